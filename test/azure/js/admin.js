// Uses the administration client of the official SDK for JavaScript against the sidecar whose connection string is the
// argument. A check that fails ends it with an error.
"use strict";

const assert = require("node:assert/strict");
const { ServiceBusAdministrationClient } = require("@azure/service-bus");

const client = new ServiceBusAdministrationClient(process.argv[2]);
const missing = { code: "MessageEntityNotFoundError", statusCode: 404 };
const exists = { code: "MessageEntityAlreadyExistsError", statusCode: 409 };

async function all(pages) {
  const found = [];
  for await (const one of pages) {
    found.push(one);
  }
  return found;
}

async function queues() {
  const asked = {
    lockDuration: "PT45S", maxDeliveryCount: 4, requiresSession: true, defaultMessageTimeToLive: "P7D", userMetadata: "<m & 'n'>",
    deadLetteringOnMessageExpiration: true, duplicateDetectionHistoryTimeWindow: "PT1M", requiresDuplicateDetection: true,
  };
  await client.createQueue("dead");
  const made = await client.createQueue("js/q", { ...asked, forwardDeadLetteredMessagesTo: "dead" });
  assert.equal(made.name, "js/q");
  for (const [name, value] of Object.entries(asked)) {
    assert.equal(made[name], value, name);
  }
  assert.match(made.forwardDeadLetteredMessagesTo, /\/dead$/);
  assert.deepEqual([made.status, made.maxSizeInMegabytes, made.autoDeleteOnIdle], ["Active", 1024, "P10675199DT2H48M5.4775807S"]);
  const got = await client.getQueue("js/q");
  assert.equal(got.lockDuration, "PT45S");
  got.lockDuration = "PT20S";
  got.status = "ReceiveDisabled";
  const changed = await client.updateQueue(got);
  assert.deepEqual([changed.lockDuration, changed.status, changed.maxDeliveryCount], ["PT20S", "ReceiveDisabled", 4]);
  const runtime = await client.getQueueRuntimeProperties("js/q");
  assert.deepEqual([runtime.totalMessageCount, runtime.activeMessageCount, runtime.sizeInBytes], [0, 0, 0]);
  assert.ok(runtime.createdAt <= new Date());
  assert.equal(await client.queueExists("js/q"), true);
  assert.equal(await client.queueExists("no"), false);
  await assert.rejects(client.createQueue("js/q"), exists);
  await assert.rejects(client.getQueue("no"), missing);
  await assert.rejects(client.deleteQueue("no"), missing);
  for (let i = 0; i < 5; i++) {
    await client.createQueue(`page-${i}`);
  }
  const names = [];
  let pages = 0;
  for await (const page of client.listQueues().byPage({ maxPageSize: 3 })) {
    names.push(...page.map((q) => q.name));
    pages++;
  }
  assert.deepEqual(names, ["dead", "js/q", "page-0", "page-1", "page-2", "page-3", "page-4"]);
  assert.equal(pages, 3);
  assert.equal((await all(client.listQueuesRuntimeProperties())).length, 7);
  await client.deleteQueue("js/q");
}

async function topics() {
  await client.createTopic("news", { userMetadata: "m", enableBatchedOperations: false });
  const topic = await client.getTopic("news");
  assert.deepEqual([topic.userMetadata, topic.enableBatchedOperations, topic.supportOrdering], ["m", false, true]);
  topic.status = "SendDisabled";
  assert.equal((await client.updateTopic(topic)).status, "SendDisabled");
  await client.createSubscription("news", "all", { maxDeliveryCount: 3 });
  await client.createSubscription("news", "some", {
    defaultRuleOptions: { name: "first", filter: { subject: "x" } },
  });
  const subscription = await client.getSubscription("news", "all");
  assert.deepEqual([subscription.topicName, subscription.subscriptionName, subscription.maxDeliveryCount], ["news", "all", 3]);
  subscription.lockDuration = "PT10S";
  assert.equal((await client.updateSubscription(subscription)).lockDuration, "PT10S");
  assert.equal((await client.getSubscriptionRuntimeProperties("news", "all")).activeMessageCount, 0);
  assert.deepEqual((await all(client.listSubscriptions("news"))).map((s) => s.subscriptionName), ["all", "some"]);
  assert.equal((await client.getTopicRuntimeProperties("news")).subscriptionCount, 2);
  assert.deepEqual((await all(client.listTopics())).map((t) => t.name), ["news"]);
  assert.equal(await client.subscriptionExists("news", "no"), false);
  await assert.rejects(client.createSubscription("news", "all"), exists);
  await assert.rejects(client.getSubscription("news", "no"), missing);
}

async function rules() {
  const sql = { sqlExpression: "n > @n AND s = @s", sqlParameters: { "@n": 5, "@s": "<x>" } };
  const action = { sqlExpression: "SET a = @a", sqlParameters: { "@a": true } };
  const made = await client.createRule("news", "all", "sql", sql, action);
  assert.deepEqual([made.name, made.filter, made.action], ["sql", sql, action]);
  const correlation = {
    correlationId: "c", subject: "s", to: "t", replyTo: "r", replyToSessionId: "rs", sessionId: "si", messageId: "m",
    contentType: "ct", applicationProperties: { text: "a", n: 0.5, flag: true, at: new Date("2026-01-02T03:04:05Z") },
  };
  assert.deepEqual((await client.createRule("news", "all", "correlation", correlation)).filter, correlation);
  const rule = await client.getRule("news", "all", "sql");
  rule.filter = { sqlExpression: "b = 1" };
  rule.action = {};
  const changed = await client.updateRule("news", "all", rule);
  assert.equal(changed.filter.sqlExpression, "b = 1");
  assert.equal(changed.action.sqlExpression, undefined);
  assert.deepEqual((await all(client.listRules("news", "all"))).map((r) => r.name), ["$Default", "correlation", "sql"]);
  assert.equal((await client.getRule("news", "some", "first")).filter.subject, "x");
  assert.equal((await client.getRule("news", "all", "$Default")).filter.sqlExpression, "1=1");
  await client.deleteRule("news", "all", "$Default");
  assert.equal(await client.ruleExists("news", "all", "$Default"), false);
  await assert.rejects(client.createRule("news", "all", "sql", sql), exists);
  await assert.rejects(client.createRule("news", "all", "bad", { sqlExpression: "n =" }), { statusCode: 400 });
}

async function main() {
  await queues();
  await topics();
  await rules();
  assert.equal((await client.getNamespaceProperties()).messagingSku, "Standard");
  await client.deleteSubscription("news", "all");
  await client.deleteTopic("news");
  assert.equal(await client.topicExists("news"), false);
  console.log("all checked"); // node also ends if nothing answers any more
}

main().catch((failure) => {
  console.error(failure);
  process.exit(1);
});
