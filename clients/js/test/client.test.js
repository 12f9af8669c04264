import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client, GaplessError, SkippedError } from "../gapless.js";
import { startNetwork } from "./network.js";

/** @type {Awaited<ReturnType<typeof startNetwork>>} */
let network;
/** @type {Client} */
let client;

before(async () => {
  network = await startNetwork();
  client = new Client(network.urls.b0);
});
after(() => network.stop());

/** @param {AsyncIterable<import("../gapless.js").Event>} events @param {number} count */
async function take(events, count) {
  const taken = [];
  if (count) for await (const event of events) if (taken.push(event) >= count) break;
  return taken;
}

/** @param {string} topic @param {number} count @param {number} [first] */
function numbered(topic, count, first = 0) {
  return Array.from({ length: count }, (_, i) => ({ attributes: { topic, number: first + i } }));
}

/** @param {import("../gapless.js").Event[]} events */
const numbers = (events) => events.map((event) => event.attributes.number);

test("a subscription that is ready gets what is published from then on", async () => {
  const subscription = client.subscribe("topic = 'live'");
  await subscription.ready;
  const published = await client.publish({ attributes: { topic: "live" }, data: { amount: 7 } });
  const [event] = await take(subscription, 1);
  assert.equal(event.id, published.id);
  assert.deepEqual(event.data, { amount: 7 });
  assert.equal(published.duplicate, false);
  assert.deepEqual(await subscription.next(), { value: undefined, done: true }, "leaving the loop closes it");
});

test("the same id publishes once", async () => {
  const draft = { id: "order-17", attributes: { topic: "once" }, text: "x" };
  const first = await client.publish(draft);
  const second = await new Client(network.urls.b1).publish(draft);
  assert.equal(second.duplicate, true);
  assert.equal(second.id, first.id);
  assert.equal((await take(client.read("topic = 'once'"), 9)).length, 1);
});

test("history is read in order, and ends", async () => {
  await client.publishMany(numbered("history", 500));
  const events = [];
  for await (const event of client.read("topic = 'history' AND number < 300")) events.push(event);
  assert.deepEqual(numbers(events), [...Array(300).keys()]);
});

test("a cursor continues after what was taken, at another broker", async () => {
  await client.publishMany(numbered("cursor", 50));
  const first = client.subscribe("topic = 'cursor'", { since: "earliest" });
  assert.deepEqual(numbers(await take(first, 20)), [...Array(20).keys()]);
  const second = new Client(network.urls.b2).subscribe("topic = 'cursor'", { resume: first.cursor });
  assert.deepEqual(numbers(await take(second, 30)), [...Array(30).keys()].map((i) => i + 20));
});

test("a stream that is cut resumes without gap or duplicate", async () => {
  const reader = new Client([network.urls.b1, network.urls.b2]);
  /** @type {string[]} */
  const states = [];
  const subscription = reader.subscribe("topic = 'cut'", { onState: (state) => states.push(state) });
  await subscription.ready;
  const taking = take(subscription, 120);
  for (let first = 0; first < 120; first += 40) {
    await client.publishMany(numbered("cut", 40, first));
    if (first < 80) await network.cut("b1");
  }
  assert.deepEqual(numbers(await taking), [...Array(120).keys()]);
  assert.equal(states.filter((state) => state === "disconnected").length >= 1, true, String(states));
});

test("errors carry the problem document", async () => {
  const subscription = client.subscribe("topic = ");
  await assert.rejects(subscription.ready, (error) => {
    assert(error instanceof GaplessError);
    assert.equal(error.kind, "invalid-filter");
    assert.equal(error.problem.position, 8);
    assert.equal(error.isTransient, false);
    return true;
  });
  await assert.rejects(subscription.next(), GaplessError);
  assert.equal((await subscription.next()).done, true);
  await assert.rejects(client.publish({ text: "x", data: 1 }), /one payload/);
  const nobody = new Client("http://127.0.0.1:1", { timeoutMs: 300 });
  await assert.rejects(nobody.publish({}), /127\.0\.0\.1:1 cannot be reached/);
});

test("an abort signal closes a subscription", async () => {
  const abort = new AbortController();
  const subscription = client.subscribe("topic = 'none'", { signal: abort.signal });
  await subscription.ready;
  const waiting = subscription.next();
  abort.abort();
  assert.equal((await waiting).done, true);
});

test("a durable subscription continues after the last acknowledged event", async () => {
  const first = client.durable("billing", { filter: "topic = 'bill'" });
  await first.ready;
  await client.publishMany(numbered("bill", 4));
  const events = await (async () => {
    const taken = [];
    while (taken.length < 4) taken.push(/** @type {any} */ ((await first.next()).value));
    return taken;
  })();
  assert.equal(await first.ack(events[0], events[1]), 2);
  first.close();
  const second = new Client(network.urls.b1).durable("billing", { filter: "topic = 'bill'" });
  assert.deepEqual(numbers(await take(second, 2)), [2, 3]);
  assert.deepEqual((await client.durables()).map((each) => each.name), ["billing"]);
  await client.deleteDurable("billing");
  assert.deepEqual(await client.durables(), []);
});

test("what history does not hold is reported, and the iteration goes on", async () => {
  const served = [
    'id: p1\nevent: ready\ndata: {"cursor":"p1"}\n\n',
    'event: skipped\ndata: {"detail":"3 events are missing","lost":{"ann":[[1,3]]},"gap":null}\n\n',
    'id: p2\ndata: {"id":"ann:4","publisher":"ann","number":4,"attributes":{}}\n\n',
    'id: p2\nevent: end\ndata: {"cursor":"p2"}\n\n',
  ].join("");
  const fetch = async () => new Response(served, { headers: { "Content-Type": "text/event-stream" } });
  const subscription = new Client("http://x", { fetch }).subscribe();
  await assert.rejects(subscription.next(), (error) => error instanceof SkippedError && "ann" in error.lost);
  assert.equal((await subscription.next()).value?.id, "ann:4");
  assert.equal((await subscription.next()).done, true);
});

test("a broker that crashes loses nothing", async () => {
  const reader = new Client([network.urls.b2, network.urls.b0]);
  const subscription = reader.subscribe("topic = 'crash'");
  await subscription.ready;
  const taking = take(subscription, 60);
  await client.publishMany(numbered("crash", 30));
  await network.crash("b2");
  const publisher = new Client([network.urls.b2, network.urls.b1]);
  await publisher.publishMany(numbered("crash", 30, 30));
  assert.deepEqual(numbers(await taking), [...Array(60).keys()]);
});
