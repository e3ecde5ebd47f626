#!/usr/bin/env node
// A Sidebus consumer that needs nothing but Node.js 18 or later.
const USAGE = `usage: consumer.mjs QUEUE [--until-empty]

SIDEBUS_URL is the address of the sidecar; the default is http://127.0.0.1:7420. The program asks the queue whether
it has sessions and consumes it accordingly. --until-empty ends the program when nothing is available. SIGTERM and
Ctrl-C finish the current message, release the others and end the program.`;

import { setTimeout as sleep } from "node:timers/promises";

const URL = process.env.SIDEBUS_URL ?? "http://127.0.0.1:7420";
const WAIT = 5; // seconds that a receive waits for a message; a stop takes that long at most, plus the current message
const BATCH = 10; // messages a receive may return; all of them stay locked until it is their turn
const RETRY_DELAY = "2s"; // how long an abandoned message stays invisible
const GRACE = 10; // seconds after a stop in which a failed call is still repeated

let stopTime; // when the program was told to stop

/** The message can never be processed. */
class BadMessage extends Error {
  constructor(reason, description) {
    super(description);
    this.reason = reason;
  }
}

/**
 * Replace this with your work. It may run twice for one message, so make it safe to repeat.
 *
 * If it returns, the message is completed. If it throws BadMessage, the message is dead-lettered. If it throws anything
 * else, the message is abandoned and comes again after RETRY_DELAY. This one follows the message's properties.
 */
async function handle(message) {
  const { seconds = 0, fail } = message.properties;
  await sleep(1000 * seconds);
  if (fail === "always") throw new BadMessage("NotWanted", "the property fail is always");
  if (fail === "once" && message.deliveryCount === 1) throw new Error("the property fail is once");
  console.log(message.sequenceNumber, content(message));
}

/** Returns the body as its sender sent it: text, JSON or bytes. Over HTTP, JSON is parsed already. */
function content(message) {
  return message.text ?? ("json" in message ? message.json : Buffer.from(message.body, "base64"));
}

/** The sidecar refused a call. Decide by the reason, never by the text. */
class Refused extends Error {
  constructor({ reason, message, retryable, retryAfterMs }) {
    super(`${reason}: ${message}`);
    Object.assign(this, { reason, retryable, retryAfterMs });
  }
}

/** Makes one call: a POST, or a GET without a body. The timeout must be longer than the wait. */
async function callOnce(path, body, wait = 0) {
  const response = await fetch(URL + path, {
    method: body ? "POST" : "GET",
    headers: { "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(1000 * (wait + 10)),
  });
  const answer = await response.json();
  if (!response.ok) throw new Refused(answer);
  return answer;
}

/**
 * Makes a call and repeats it with growing pauses while that may help. A call that waits is not repeated after a stop;
 * it returns an empty answer.
 */
async function call(path, body, wait = 0) {
  for (let pause = 100; ; pause = Math.min(2 * pause, 5000)) {
    try {
      return await callOnce(path, body, wait);
    } catch (error) {
      // THROTTLED and STORE_UNAVAILABLE are retryable, for example. Other errors mean no answer, or half of one.
      if (error instanceof Refused && !error.retryable) throw error;
      if (stopTime && wait) return {};
      if (stopTime && Date.now() > stopTime + 1000 * GRACE) throw error;
      log(`${error.message}; next try follows`);
      await sleep(Math.max(error.retryAfterMs ?? 0, pause * (0.5 + Math.random() / 2)));
    }
  }
}

class Consumer {
  static async of(queue) {
    const consumer = new Consumer();
    consumer.path = "/v1/queues/" + encodeURIComponent(queue);
    const options = await call(consumer.path);
    consumer.hasSessions = options.requiresSession;
    consumer.renewEvery = (1000 * parseFloat(options.lockDuration)) / 3;
    return consumer;
  }

  /** Consumes until the program is told to stop or, without a wait, until nothing is available. */
  async run(wait) {
    for (let some = true; !stopTime && (some || wait); ) {
      some = this.hasSessions ? await this.nextSession(wait) : await this.nextBatch(wait);
    }
  }

  /** Calls renew every few seconds until the work ends. */
  async renewing(renew, work) {
    let ended = false;
    const timer = setInterval(() => {
      // After a failure there is time for another one before the lock expires.
      renew().catch((error) => ended || log(`renewal: ${error.message}`));
    }, this.renewEvery);
    try {
      return await work();
    } finally {
      ended = true;
      clearInterval(timer);
    }
  }

  // A queue without sessions: a batch of messages, each with a lock of its own.

  async nextBatch(wait) {
    const messages = await this.receive(wait, { maxMessages: BATCH });
    const held = new Map(messages.map((message) => [message.lockToken, message]));
    const renew = async () => {
      const answer = await callOnce(`${this.path}/messages:renewLocks`, { lockTokens: [...held.keys()] });
      for (const { lockToken, reason } of answer.results) {
        if (reason) held.delete(lockToken); // the lock expired: another consumer may have the message
      }
    };
    await this.renewing(renew, async () => {
      for (const message of messages) {
        if (stopTime) break;
        if (held.has(message.lockToken) && (await this.process(message))) await this.settle("complete", [message]);
        held.delete(message.lockToken);
      }
    });
    if (held.size) await this.settle("release", [...held.values()]);
    return messages.length > 0;
  }

  // A queue with sessions: one lock for all messages of a session, which come in order, one at a time. One call
  // completes a message and receives the next one.

  async nextSession(wait) {
    const { session } = await call(`${this.path}/sessions:accept`, { maxWait: `${wait}s` }, wait);
    if (!session) return false;
    const lock = { lockToken: session.lockToken };
    try {
      const renew = () => callOnce(`${this.path}/sessions:renewLock`, lock);
      await this.renewing(renew, () => this.processSession(session));
      await call(`${this.path}/sessions:close`, lock);
    } catch (error) {
      if (error.reason !== "SESSION_LOCK_LOST") throw error;
      log(`session ${session.sessionId}: ${error.message}`); // another consumer may have it
    }
    return true;
  }

  async processSession(session) {
    const lock = { sessionLockToken: session.lockToken };
    // The state is the number of the last message whose work is done. It is bytes, in base64. int64 is a string in JSON
    // and exact only as a BigInt.
    let done = BigInt(Buffer.from(session.state ?? "", "base64").toString());
    let finished = []; // the message whose work is done, to be completed
    while (!stopTime) {
      const messages = await this.completeAndReceive(finished, lock);
      finished = [];
      if (!messages.length) return;
      const number = BigInt(messages[0].sessionSequence);
      // If number === done, the state was set, but then the message was not completed.
      if (number === done || (await this.process(messages[0], session))) {
        done = number;
        finished = messages;
      }
    }
    if (finished.length) await this.settle("complete", finished, lock);
  }

  async completeAndReceive(finished, lock) {
    const body = { lockTokens: finished.map((message) => message.lockToken), maxWait: "0s", ...lock };
    const { results, messages, failure } = await call(`${this.path}/messages:completeAndReceive`, body);
    report("complete", finished, results);
    return failure ? this.receive(0, lock) : messages; // of the receive only, which repeats what may help
  }

  // Both.

  async receive(wait, options) {
    const body = { ...options, maxWait: `${wait}s` }; // without maxWait, the receive waits for 60 s
    const { messages = [] } = await call(`${this.path}/messages:receive`, body, wait);
    return messages;
  }

  /** Hands a message to handle. Returns whether its work is done; if not, the message is settled. */
  async process(message, session) {
    const lock = session && { sessionLockToken: session.lockToken };
    try {
      await handle(message);
    } catch (error) {
      if (error instanceof BadMessage) {
        const description = error.message.slice(0, 4096);
        await this.settle("deadLetter", [message], { reason: error.reason, description, ...lock });
      } else {
        log(`${message.sequenceNumber}: ${error}`); // the queue's maxDeliveryCount bounds the deliveries
        await this.settle("abandon", [message], { delay: RETRY_DELAY, ...lock });
      }
      return false;
    }
    if (session) {
      // First the state, then complete.
      const state = Buffer.from(message.sessionSequence).toString("base64");
      await call(`${this.path}/sessions:setState`, { lockToken: session.lockToken, state });
    }
    return true;
  }

  /** Settles messages. A row of the answer with a reason is a message that was not settled. */
  async settle(verb, messages, options) {
    const lockTokens = messages.map((message) => message.lockToken);
    const { results } = await call(`${this.path}/messages:${verb}`, { ...options, lockTokens });
    report(verb, messages, results);
  }
}

function report(verb, messages, results) {
  results.forEach(({ reason = "done" }, i) => log(`${messages[i].sequenceNumber} ${verb}: ${reason}`));
}

function log(text) {
  console.error(text);
}

const [queue, option] = process.argv.slice(2);
if (!queue) {
  console.error(USAGE);
  process.exit(1);
}
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => (stopTime ??= Date.now()));
const consumer = await Consumer.of(queue);
await consumer.run(option === "--until-empty" ? 0 : WAIT);
