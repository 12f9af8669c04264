/** The view of the network: its tree, each broker, problems, and recent changes. */

import { bytes, clock, count, duration, h, pill, show, table } from "/console/dom.js";
import { drawTree } from "/console/tree.js";
import { exclusions, handovers } from "/console/watch.js";

let parts = null;
let chosen = "";
let last = null;

export const network = {
  title: "Network",
  needs: "status",
  enter() {
    parts = { tiles: h("dl", { class: "tiles" }), findings: h("div", { class: "findings" }), tree: h("div", { class: "scroll" }), detail: h("section", { class: "card", "aria-label": "The chosen broker" }), happened: h("ul"), list: h("div", {}) };
    return [
      h("h1", {}, "Network"), parts.tiles, parts.findings,
      h("div", { class: "split" },
        h("section", { class: "card" }, h("h2", {}, "Tree of brokers"), parts.tree,
          h("ul", { class: "legend" }, h("li", {}, "● up"), h("li", {}, "▲ held up or starting"), h("li", {}, "✕ down"), h("li", {}, "- - - handover"), h("li", {}, "→ takes over for"), h("li", {}, "line: traffic"), h("li", {}, "number: events delivered per second"))),
        h("div", { class: "column" }, parts.detail, h("section", { class: "card" }, h("h2", {}, "Changes since this page was opened"), h("div", { class: "scroll happened", role: "log", "aria-label": "What changed", tabindex: 0 }, parts.happened)))),
      h("section", { class: "card" }, h("h2", {}, "Brokers"), parts.list),
    ];
  },
  leave() { parts = null; },
  update(watch) {
    if (!parts) return;
    last = watch;
    chosen = watch.now.brokers[chosen] ? chosen : watch.now.here;
    show(parts.tiles, tiles(watch));
    show(parts.findings, watch.now.findings.map(finding));
    show(parts.tree, drawTree(watch, chosen, choose));
    show(parts.detail, detail(watch, watch.now.brokers[chosen]));
    show(parts.happened, watch.changes.length ? watch.changes.map((change) => h("li", {}, h("time", {}, clock(change.time)), h("span", {}, pill(change.kind, { ok: "✓", warn: "▲", bad: "✕" }[change.kind]), " ", change.text))) : h("li", { class: "muted" }, h("span"), "Nothing yet."));
    show(parts.list, list(watch));
  },
};

function choose(name) {
  chosen = name;
  if (last) network.update(last);
}

export function finding({ what, todo }) {
  return h("div", { class: "finding" }, h("p", {}, what), h("p", {}, todo));
}

function tiles(watch) {
  const { now } = watch;
  const brokers = Object.values(now.brokers);
  const up = brokers.filter((broker) => broker.state === "up").length;
  const answering = brokers.filter((broker) => broker.state !== "down");
  const sum = (key) => answering.some((broker) => key in broker) ? answering.reduce((all, broker) => all + (broker[key] ?? 0), 0) : undefined;
  const missing = deficits(now);
  const blocked = new Set(answering.flatMap((broker) => broker.blocked_publishers?.clients ?? []));
  const tile = (title, value, unit = "", kind = "") => h("div", { class: `tile ${kind}` }, h("dt", {}, title), h("dd", {}, value, unit ? h("small", {}, ` ${unit}`) : null));
  return [
    tile("Brokers up", `${up}`, `of ${brokers.length}`, up < brokers.length ? "bad" : ""),
    tile("Clients", count(sum("clients") ?? 0)),
    tile("Published", count(watch.total("published") ?? NaN), "per s"),
    tile("Delivered", count(watch.total("delivered") ?? NaN), "per s"),
    tile("Between brokers", `${bytes(Object.values(watch.traffic).reduce((a, b) => a + b, 0))}/s`),
    tile("Under-replicated", missing.length || "none", missing.slice(0, 3).join(", "), missing.some((each) => !IN_FLIGHT.test(each)) ? "bad" : ""),
    tile("Handovers", handovers(now).size, "", handovers(now).size ? "warn" : ""),
    tile("Blocked", blocked.size, blocked.size === 1 ? "publisher" : "publishers", blocked.size ? "warn" : ""),
  ];
}

/** Matches deficits that are normal, because events are being replicated. */
const IN_FLIGHT = / events at /;

/** Return the data with fewer than f + 1 replicas: incomplete journals, data of absent brokers, publications. */
function deficits(now) {
  const found = new Set();
  for (const broker of Object.values(now.brokers)) {
    for (const { needs_back = [] } of broker.handovers ?? []) for (const name of needs_back) found.add(`data of ${name}`);
    for (const journal of broker.history?.under_replicated ?? []) found.add(`journal ${journal}`);
    if (broker.unconfirmed) found.add(`${count(broker.unconfirmed)} events at ${broker.name}`);
  }
  return [...found];
}

const kindOf = (state) => ({ up: "ok", down: "bad" })[state] ?? "warn";

function detail(watch, broker) {
  const { now } = watch;
  const heading = h("h2", {}, `Broker ${broker.name} `, pill(kindOf(broker.state), broker.state));
  if (broker.state === "down") {
    const why = { nobody: "Nothing listens at its address.", frozen: "It accepts connections and does not answer.", unreachable: "It cannot be reached.", "turned-down": "It refuses the request." };
    const [by, successor] = exclusions(now).get(broker.name) ?? [];
    return [heading, h("p", {}, `${why[broker.silence] ?? ""} ${broker.why ?? ""}`), by ? h("p", {}, successor ? `Excluded; ${successor} takes over for it.` : "Excluded by the others.") : null];
  }
  const http = now.http[broker.name];
  const facts = [
    ["Incarnation", broker.incarnation], ["Up for", duration(broker.uptime_s)], ["Address", h("code", {}, broker.address)],
    ["Clients", `${broker.clients} (${broker.connections} connected)`],
    ["Waits", broker.waits.length ? h("ul", {}, broker.waits.map((wait) => h("li", {}, wait.text))) : "for nothing"],
    ["Takes over for", Object.entries(broker.replaced_by ?? {}).filter(([, successor]) => successor === broker.name).map(([name]) => name).join(", ") || "nobody"],
    ["Has excluded", Object.keys(broker.replaced_by ?? {}).join(", ") || "nobody"],
    broker.unconfirmed === undefined ? null : ["Unconfirmed", `${count(broker.unconfirmed)} events held by fewer than ${now.f + 1} brokers`],
    broker.history ? ["History", `${bytes(broker.history.bytes)}, read by ${broker.history.reads} subscriptions`] : null,
    ["Keeps", Object.entries(broker.kept).map(([kind, size]) => `${kind} ${count(size)}`).join(", ") || null],
    ["Event loop", `late by ${duration(broker.turns.late_ms / 1000)}; longest turn ${duration(broker.turns.longest_ms / 1000)}`],
    ["Disk", broker.data.directory ? h("code", {}, broker.data.directory) : "none"],
  ].filter((fact) => fact && fact[1] !== null);
  const rows = Object.entries(broker.links).map(([peer, link]) => [
    peer, link.up ? pill("ok", "up") : pill("bad", link.left ? "left" : link.suspected ? "suspected" : "down"),
    `${bytes(watch.traffic[`${broker.name} ${peer}`] ?? 0)}/s`, `${bytes(watch.traffic[`${peer} ${broker.name}`] ?? 0)}/s`, count(link.queue),
  ]);
  return [heading, h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("h3", {}, "Links"), table(`Links of ${broker.name}`, ["To", "State", "#Sends", "#Receives", "#Queue"], rows),
    http && broker.name !== now.here ? h("p", { class: "small" }, h("a", { href: `${location.protocol}//${http}/` }, `Console of ${broker.name}`)) : null];
}

function list(watch) {
  const rows = Object.values(watch.now.brokers).map((broker) => {
    const rates = watch.rates[broker.name] ?? {};
    const up = broker.state === "down" ? [] : Object.values(broker.links);
    const name = h("button", { class: "slim", type: "button", "data-key": `row-${broker.name}`, onclick: () => choose(broker.name) }, broker.name);
    if (broker.state === "down") return [name, pill("bad", "down"), "", "", "", "", "", ""];
    return [name, pill(kindOf(broker.state), broker.state), broker.incarnation, count(broker.clients), count(rates.published ?? NaN), count(rates.delivered ?? NaN), `${up.filter((each) => each.up).length}/${up.length}`, duration(broker.uptime_s)];
  });
  return table("Brokers", ["Broker", "State", "#Incarnation", "#Clients", "#Published/s", "#Delivered/s", "#Links up", "#Up for"], rows);
}
