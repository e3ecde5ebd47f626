// Sends and receives with the official SDK for JavaScript over TLS. The arguments are a connection string, and "tls" or
// "websocket". It needs the queue "js". A check that fails ends it with an error.
"use strict";

const assert = require("node:assert/strict");
const { ServiceBusClient } = require("@azure/service-bus");
const WebSocket = require("ws");

async function main() {
  const [connectionString, way] = process.argv.slice(2);
  const options = way === "websocket" ? { webSocketOptions: { webSocket: WebSocket } } : {};
  const client = new ServiceBusClient(connectionString, options);
  const sender = client.createSender("js");
  const receiver = client.createReceiver("js");
  const body = "x".repeat(200_000);
  await sender.sendMessages({ body });
  const [m] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 30_000 });
  assert.equal(m.body, body);
  await receiver.completeMessage(m);
  assert.equal((await receiver.peekMessages(1)).length, 0);
  await client.close();
  console.log("all checked"); // node also ends if nothing answers any more
}

main().catch((failure) => {
  console.error(failure);
  process.exit(1);
});
