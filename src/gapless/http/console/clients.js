/** The view of clients, their filters with covering filters, durable subscriptions, and blocked publishers. */

import { get, send, session } from "/console/api.js";
import { ask, count, duration, h, pill, show, table } from "/console/dom.js";

let parts = null;
let sessions = null;
let covers = {};
let compared = "";

export const clients = {
  title: "Clients",
  needs: "status",
  enter() {
    parts = { message: h("p", { role: "status", class: "small" }), waits: h("div", { class: "findings" }), clients: h("div"), filters: h("div"), durable: h("div") };
    sessions = null;
    return [
      h("h1", {}, "Clients and subscriptions"), parts.message, parts.waits,
      h("section", { class: "card" }, h("h2", {}, "Clients"), parts.clients),
      h("section", { class: "card" }, h("h2", {}, "Filters"), h("p", { class: "muted small" }, "Brokers forward a subscription only where no other one covers it."), parts.filters),
      h("section", { class: "card" }, h("h2", {}, "Durable and shared subscriptions"), parts.durable),
    ];
  },
  leave() { parts = null; },
  topics: () => [["topic", "sessions"], ["topic", "durables"]],
  see(topic, answer, problem) {
    if (!parts) return;
    if (topic === "durables") return problem ? show(parts.durable, h("p", { class: "empty" }, problem.detail)) : showDurables(Object.values(answer));
    if (problem) { parts.message.textContent = problem.detail; return; }
    sessions = answer;
    showClients();
    showFilters().catch((error) => { if (parts) parts.message.textContent = error.message; });
  },
  update(watch) {
    if (!parts) return;
    const blocked = Object.values(watch.now.brokers).flatMap((broker) => (broker.waits ?? []).filter((wait) => wait.kind === "publish").map((wait) => [broker.name, wait]));
    const paused = Object.values(watch.now.brokers).filter((broker) => broker.paused).map((broker) => broker.name);
    const found = [
      ...blocked.map(([name, wait]) => h("div", { class: "finding" }, h("p", {}, `${name} ${wait.text}`), h("p", {}, "A broker admits a bounded number of publications that not all brokers have processed. Clients never block publishers."))),
      ...paused.map((name) => h("div", { class: "finding" }, h("p", {}, `${name} blocks its clients, because its send queues are full.`))),
    ];
    show(parts.waits, found.length ? found : h("p", { class: "finding good" }, "Nothing blocks publishers."));
    this.watch = watch;
    showClients();
  },
};

/** Reload the lists, so that the effect of an operator's action is visible at once. */
async function refresh() {
  for (const [topic, path] of [["sessions", "/api/sessions"], ["durables", "/durable"]]) {
    try {
      clients.see(topic, await get(path));
    } catch (error) {
      clients.see(topic, null, { detail: error.message });
    }
  }
}

function statusOf(broker, name) {
  if (broker?.blocked_publishers?.clients?.includes(name)) return pill("warn", "cannot publish");
  if (broker?.lagging?.includes(name)) return pill("warn", "lags, served from history");
  if (broker?.disconnected?.includes(name)) return pill("warn", "disconnected");
  return pill("ok", "ok");
}

function showClients() {
  if (!sessions) return;
  const rows = Object.entries(sessions).flatMap(([at, { rows: found }]) => found.map(({ client, subscriptions, advertisements }) => {
    const broker = clients.watch?.now.brokers[at];
    const filters = Object.values(subscriptions);
    const end = h("button", { type: "button", class: "slim danger", "data-key": `end-${client}`, onclick: () => endClient(client) }, "End session");
    return [h("code", {}, client), at, filters.length ? h("ul", {}, filters.slice(0, 5).map((text) => h("li", {}, h("code", {}, text))), filters.length > 5 ? h("li", { class: "muted" }, `and ${filters.length - 5} more`) : null) : h("span", { class: "muted" }, "none"), count(advertisements), count(broker?.lag?.[client] ?? 0), statusOf(broker, client), session.rights.operate ? end : ""];
  }));
  const more = Object.values(sessions).reduce((sum, each) => sum + each.more, 0);
  show(parts.clients, table("Clients", ["Client", "Broker", "Subscribes to", "#Advertisements", "#Lag", "Status", ""], rows, "No client has a session."), more ? h("p", { class: "muted small" }, `${more} more clients are not listed.`) : null);
}

async function showFilters() {
  const counts = new Map();
  for (const { rows } of Object.values(sessions)) for (const { subscriptions } of rows) for (const text of Object.values(subscriptions)) counts.set(text, (counts.get(text) ?? 0) + 1);
  const texts = [...counts.keys()].sort();
  if (texts.join("\n") !== compared) {
    covers = texts.length > 1 ? await send("POST", "/api/covers", { filters: texts }) : {};
    compared = texts.join("\n");
  }
  if (!parts) return;
  show(parts.filters, table("Filters", ["Filter", "#Subscriptions", "Covered by"], texts.map((text) => [h("code", {}, text), counts.get(text), covers[text] ? h("code", {}, covers[text]) : h("span", { class: "muted" }, "none")]), "No subscription."));
}

function showDurables(durables) {
  const rows = durables.map((each) => [
    h("strong", {}, each.name), h("code", {}, each.filter), each.is_shared ? "shared" : "durable", each.client ? h("code", {}, each.client) : h("span", { class: "muted" }, "nobody"), duration(each.lag_s), h("code", {}, each.position),
    h("span", { class: "row" },
      h("button", { type: "button", class: "slim", "data-key": `move-${each.name}`, onclick: () => move(each) }, "Move"),
      h("button", { type: "button", class: "slim danger", "data-key": `delete-${each.name}`, onclick: () => remove(each) }, "Delete")),
  ]);
  show(parts.durable, table("Durable subscriptions", ["Name", "Filter", "Kind", "Attached", "#Lag", "Acknowledged up to", ""], rows, "There is no durable subscription."));
}

async function act(work, done) {
  try {
    const answer = await work();
    parts.message.textContent = answer && answer.ended === false ? answer.reason : done;
    refresh();
  } catch (error) {
    parts.message.textContent = error.message;
  }
}

async function endClient(name) {
  if (await ask({ title: "End this session?", text: `${name} loses its session, its subscriptions and its advertisements. Its published events are kept.`, action: "End session" })) {
    await act(() => send("DELETE", `/api/clients/${encodeURIComponent(name)}`), `The session of ${name} has ended.`);
  }
}

async function move({ name, position }) {
  const asked = await ask({ title: `Move ${name}`, text: "It continues after this position. An attached client is detached and attaches again. Events between the two positions are skipped or redelivered.", action: "Move", fields: [{ name: "to", label: "A position, a time, an age such as 10m, earliest, or now", value: position }] });
  if (asked) await act(() => send("POST", `/durable/${encodeURIComponent(name)}/move`, asked), `${name} continues after ${asked.to}.`);
}

async function remove({ name }) {
  if (await ask({ title: `Delete ${name}?`, text: "The network deletes its acknowledgements. An attached client is detached.", action: "Delete" })) {
    await act(() => send("DELETE", `/durable/${encodeURIComponent(name)}`), `${name} is deleted.`);
  }
}
