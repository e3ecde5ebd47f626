// Uses the official SDK of Azure Service Bus for JavaScript against the sidecar whose connection string is the argument.
// It needs the queues "js" and "js-sessions", and the topic "js-news" with the subscription "all". A check that fails ends it with an error.
"use strict";

const assert = require("node:assert/strict");
const { ServiceBusClient } = require("@azure/service-bus");

const client = new ServiceBusClient(process.argv[2]);

async function take(receiver, count) {
  const all = [];
  while (all.length < count) {
    all.push(...(await receiver.receiveMessages(count - all.length, { maxWaitTimeInMs: 5000 })));
  }
  return all;
}

async function sendAndReceive(sender, receiver) {
  const sent = { n: 7, ratio: 0.5, text: "x", flag: true };
  await sender.sendMessages({ body: { a: 1 }, messageId: "m", subject: "s", applicationProperties: sent, timeToLive: 60000 });
  const [m] = await take(receiver, 1);
  assert.deepEqual(m.body, { a: 1 });
  assert.deepEqual(m.applicationProperties, sent);
  assert.deepEqual([m.messageId, m.subject, m.timeToLive, m.deliveryCount], ["m", "s", 60000, 0]);
  await receiver.completeMessage(m);
  assert.equal((await receiver.receiveMessages(5, { maxWaitTimeInMs: 300 })).length, 0); // ends with a drain
}

async function batches(sender, receiver) {
  const batch = await sender.createMessageBatch();
  for (let i = 0; i < 20; i++) {
    assert.ok(batch.tryAddMessage({ body: `b${i}` }));
  }
  await sender.sendMessages(batch);
  const all = await take(receiver, 20);
  assert.deepEqual(all.map((m) => m.body), Array.from({ length: 20 }, (_, i) => `b${i}`));
  await Promise.all(all.map((m) => receiver.completeMessage(m)));
}

async function settlements(sender, receiver) {
  await sender.sendMessages({ body: "x" });
  let [m] = await take(receiver, 1);
  assert.ok((await receiver.renewMessageLock(m)) > new Date());
  await receiver.abandonMessage(m, { tried: "once" });
  [m] = await take(receiver, 1);
  assert.equal(m.deliveryCount, 1);
  await receiver.deferMessage(m);
  const [deferred] = await receiver.receiveDeferredMessages(m.sequenceNumber);
  await receiver.deadLetterMessage(deferred, { deadLetterReason: "why", deadLetterErrorDescription: "because" });
  const dead = client.createReceiver("js", { subQueueType: "deadLetter" });
  const [letter] = await take(dead, 1);
  assert.deepEqual([letter.body, letter.deadLetterReason, letter.applicationProperties.tried], ["x", "why", "once"]);
  await dead.completeMessage(letter);
  await dead.close();
}

async function schedules(sender, receiver) {
  const numbers = await sender.scheduleMessages([{ body: "later" }], new Date(Date.now() + 3600_000));
  const [m] = await receiver.peekMessages(5);
  assert.deepEqual([m.body, m.state], ["later", "scheduled"]);
  await sender.cancelScheduledMessages(numbers);
  assert.equal((await receiver.peekMessages(5)).length, 0);
}

async function receiveAndDelete(sender) {
  await sender.sendMessages([{ body: 1 }, { body: 2 }]);
  const receiver = client.createReceiver("js", { receiveMode: "receiveAndDelete" });
  assert.deepEqual((await take(receiver, 2)).map((m) => m.body), [1, 2]);
  await receiver.close();
}

async function subscribed(sender) {
  const receiver = client.createReceiver("js");
  const arrived = new Promise((resolve, reject) => {
    receiver.subscribe({
      processMessage: async (m) => resolve(m.body),
      processError: async (e) => reject(e.error),
    });
  });
  await sender.sendMessages({ body: "pushed" });
  assert.equal(await arrived, "pushed");
  await receiver.close();
}

async function sessions() {
  const sender = client.createSender("js-sessions");
  await sender.sendMessages([{ body: "1", sessionId: "a" }, { body: "2", sessionId: "b" }]);
  const a = await client.acceptSession("js-sessions", "a");
  assert.ok(a.sessionLockedUntilUtc > new Date());
  await a.setSessionState({ step: 1 });
  assert.deepEqual(await a.getSessionState(), { step: 1 });
  const [m] = await take(a, 1);
  await a.completeMessage(m);
  await a.renewSessionLock();
  await assert.rejects(client.acceptSession("js-sessions", "a", { abortSignal: AbortSignal.timeout(5000) }));
  const next = await client.acceptNextSession("js-sessions");
  assert.equal(next.sessionId, "b");
  await next.completeMessage((await take(next, 1))[0]);
  await a.close();
  await next.close();
}

async function rules() {
  const manager = client.createRuleManager("js-news", "all");
  await manager.createRule("sql", { sqlExpression: "kind = 'a'" });
  await manager.createRule("label", { subject: "x" });
  assert.deepEqual((await manager.getRules()).map((rule) => rule.name).sort(), ["$Default", "label", "sql"]);
  await manager.deleteRule("$Default");
  const sender = client.createSender("js-news");
  await sender.sendMessages([{ body: "no" }, { body: "label", subject: "x" }, { body: "sql", applicationProperties: { kind: "a" } }]);
  const receiver = client.createReceiver("js-news", "all");
  const all = await take(receiver, 2);
  assert.deepEqual(all.map((m) => m.body), ["label", "sql"]);
  await Promise.all(all.map((m) => receiver.completeMessage(m)));
}

async function refusals(sender) {
  await assert.rejects(sender.sendMessages({ body: Buffer.alloc(300_000) }), { code: "MessageSizeExceeded" });
  await assert.rejects(client.createSender("js-missing").sendMessages({ body: 1 }), { code: "MessagingEntityNotFound" });
}

async function main() {
  const sender = client.createSender("js");
  const receiver = client.createReceiver("js");
  await sendAndReceive(sender, receiver);
  await batches(sender, receiver);
  await settlements(sender, receiver);
  await schedules(sender, receiver);
  await receiveAndDelete(sender);
  await subscribed(sender);
  await sessions();
  await rules();
  await refusals(sender);
  await client.close();
}

main().catch((failure) => {
  console.error(failure);
  process.exit(1);
});
