/** The causes and effects of an event, drawn as a graph: causes on the left, effects on the right. */

import { client, get } from "/console/api.js";
import { clock, duration, h, s, show, table } from "/console/dom.js";
import { attributes, detail } from "/console/events.js";

const WIDTH = 178;
const HEIGHT = 56;
const ACROSS = 68;
const DOWN = 20;

let parts = null;

export const causes = {
  title: "Causes",
  enter(parameters) {
    const input = h("input", { class: "code", name: "position", placeholder: "p1795053515612779-1-orders" });
    parts = { input, said: h("p", { role: "status", class: "small muted" }), graph: h("div"), list: h("div"), detail: h("section", { class: "card", hidden: true, "aria-label": "The chosen event" }) };
    const position = parameters.get("position");
    if (position) { input.value = position; load(position); } else suggest();
    return [
      h("h1", {}, "Causes and effects"),
      h("form", { class: "card form", onsubmit: (event) => { event.preventDefault(); go(input.value.trim()); } },
        h("div", { class: "row" }, h("label", { class: "wide" }, "Position of an event", input), h("button", { class: "primary" }, "Draw")), parts.said),
      h("div", { class: "split" },
        h("div", { class: "column" }, h("section", { class: "card" }, h("h2", {}, "Graph"), parts.graph), h("section", { class: "card" }, h("h2", {}, "The same as a list"), parts.list)),
        parts.detail),
    ];
  },
  again(parameters) {
    const position = parameters.get("position");
    if (position) { parts.input.value = position; load(position); }
  },
  leave() { parts = null; },
};

const go = (position) => { location.hash = `#causes?position=${encodeURIComponent(position)}`; };

async function load(position) {
  parts.said.textContent = "Reading history…";
  try {
    const graph = await get(`/api/graph?position=${encodeURIComponent(position)}`);
    if (!parts) return;
    const count = graph.nodes.length;
    parts.said.textContent = `${count} event${count === 1 ? "" : "s"}, ${graph.edges.length} direct cause${graph.edges.length === 1 ? "" : "s"}${graph.is_cut ? "; the graph is larger than what is drawn" : ""}.`;
    render(graph, position);
  } catch (error) {
    if (parts) parts.said.textContent = error.message;
  }
}

/** Show recent events that name causes, as starting points. */
async function suggest() {
  show(parts.graph, h("p", { class: "empty" }, "Choose an event in Events, or one of these. An event names its direct causes in the attribute causes."));
  const found = [];
  try {
    for await (const event of client.read("causes IS NOT NULL", { since: "1h" })) if (found.push(event) > 200) found.shift();
  } catch (error) {
    if (parts) parts.said.textContent = error.message;
    return;
  }
  if (!parts) return;
  const rows = found.slice(-12).reverse().map((event) => [clock(event.time, { millis: true }), h("a", { href: `#causes?position=${encodeURIComponent(event.position)}` }, event.id), attributes(event)]);
  show(parts.list, table("Events of the last hour that name causes", ["Time", "Event", "Attributes"], rows, "No event of the last hour names causes."));
}

/** Return the column and the kind of each event, by position. Causes have negative columns, effects positive ones. */
function columns(graph, centre) {
  const [before, after] = [new Map(), new Map()];
  for (const { from, to } of graph.edges) {
    before.set(to, [...(before.get(to) ?? []), from]);
    after.set(from, [...(after.get(from) ?? []), to]);
  }
  const reach = (next) => {
    const depth = new Map([[centre, 0]]);
    const queue = [centre];
    for (let i = 0; i < queue.length && i < 10_000; i++) {
      for (const other of next.get(queue[i]) ?? []) {
        if (depth.get(queue[i]) + 1 > (depth.get(other) ?? 0) && depth.get(queue[i]) < 20) { depth.set(other, depth.get(queue[i]) + 1); queue.push(other); }
      }
    }
    return depth;
  };
  const [causesOf, effectsOf] = [reach(before), reach(after)];
  const places = new Map();
  for (const { position } of graph.nodes) {
    if (causesOf.has(position)) places.set(position, [-causesOf.get(position), position === centre ? "centre" : "cause"]);
    else places.set(position, [effectsOf.get(position) ?? 1, "effect"]);
  }
  return places;
}

/** Return the row of each event within its column: next to the middle of the events it is connected to. */
function rows(graph, places) {
  const byColumn = new Map();
  for (const { position } of graph.nodes) {
    const [column] = places.get(position);
    byColumn.set(column, [...(byColumn.get(column) ?? []), position]);
  }
  const row = new Map();
  for (const names of byColumn.values()) names.forEach((name, i) => row.set(name, i - (names.length - 1) / 2));
  for (let pass = 0; pass < 4; pass++) {
    for (const names of byColumn.values()) {
      const mean = (name) => {
        const near = graph.edges.flatMap(({ from, to }) => (from === name ? [row.get(to)] : to === name ? [row.get(from)] : []));
        return near.length ? near.reduce((a, b) => a + b, 0) / near.length : row.get(name);
      };
      const order = names.map((name) => [mean(name), name]).sort(([a], [b]) => a - b);
      order.forEach(([, name], i) => row.set(name, i - (names.length - 1) / 2));
    }
  }
  return row;
}

function render(graph, centre) {
  const places = columns(graph, centre);
  const row = rows(graph, places);
  const all = [...places.values()].map(([column]) => column);
  const [left, right] = [Math.min(...all), Math.max(...all)];
  const [top, bottom] = [Math.min(...row.values()), Math.max(...row.values())];
  const at = (position) => ({ x: (places.get(position)[0] - left) * (WIDTH + ACROSS) + 4, y: (row.get(position) - top) * (HEIGHT + DOWN) + 4 });
  const width = (right - left) * (WIDTH + ACROSS) + WIDTH + 8;
  const height = (bottom - top) * (HEIGHT + DOWN) + HEIGHT + 8;
  const own = graph.nodes.find((node) => node.position === centre);
  show(parts.graph, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Graph of causes and effects" },
    s("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `Causes and effects of ${own?.id}` },
      s("defs", {}, s("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7.5, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, s("path", { d: "M0 0l8 4l-8 4z" }))),
      graph.edges.map(({ from, to }) => {
        const [a, b] = [at(from), at(to)];
        const [x1, y1, x2, y2] = [a.x + WIDTH, a.y + HEIGHT / 2, b.x, b.y + HEIGHT / 2];
        return s("path", { class: "arc", d: `M${x1} ${y1}C${x1 + ACROSS / 2} ${y1} ${x2 - ACROSS / 2} ${y2} ${x2 - 2} ${y2}` });
      }),
      graph.nodes.map((node) => box(node, at(node.position), places.get(node.position)[1], own)))),
    h("ul", { class: "legend" }, h("li", {}, "← causes"), h("li", {}, "effects →"), h("li", {}, "dashed: history does not hold it, or you may not read it")));
  const kinds = { centre: "the event", cause: "cause", effect: "effect" };
  show(parts.list, table("Events of the graph", ["Time", "Kind", "Event", "Attributes"], graph.nodes.map((node) => [
    node.missing ? "" : clock(node.time, { millis: true }), kinds[places.get(node.position)[1]],
    node.missing ? h("code", {}, node.position) : h("button", { type: "button", class: "slim mono", onclick: () => choose(node) }, node.id), node.missing ? "not readable" : attributes(node)])));
  if (own) choose(own);
}

function box(node, { x, y }, kind, own) {
  if (node.missing) return s("g", { class: "node missing", transform: `translate(${x} ${y})` }, s("rect", { width: WIDTH, height: HEIGHT, rx: 9 }), s("text", { class: "muted", x: 12, y: 24 }, "not readable"), s("text", { class: "muted", x: 12, y: 42 }, short(node.position, 26)));
  const title = node.attributes.topic ?? node.attributes.type ?? Object.values(node.attributes)[0] ?? node.id;
  const offset = own && node !== own ? (Date.parse(node.time) - Date.parse(own.time)) / 1000 : null;
  const when = offset === null ? clock(node.time) : `${offset > 0 ? "+" : offset < 0 ? "−" : ""}${duration(Math.abs(offset))}`;
  const texts = [short(String(title), 16), when, short(node.id, 27)];
  const activate = (event) => { if (event.type === "click" || event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(node); } };
  return s("g", { class: `node ${kind}`, transform: `translate(${x} ${y})`, role: "button", tabindex: 0, "aria-label": `${texts.join(" ")}. ${kind === "centre" ? "Event" : kind === "cause" ? "Cause" : "Effect"} ${node.id}`, "data-key": `event-${node.position}`, onclick: activate, onkeydown: activate },
    s("rect", { width: WIDTH, height: HEIGHT, rx: 9 }),
    s("text", { class: "title", x: 12, y: 23 }, texts[0]), " ",
    s("text", { class: "muted", x: WIDTH - 10, y: 23, "text-anchor": "end" }, texts[1]), " ",
    s("text", { class: "muted", x: 12, y: 42 }, texts[2]));
}

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function choose(node) {
  parts.detail.hidden = false;
  show(parts.detail, detail(node, [
    h("a", { class: "button", href: `#causes?position=${encodeURIComponent(node.position)}` }, "Centre"),
    h("a", { class: "button", href: `#events?since=${encodeURIComponent(node.position)}` }, "Replay after it"),
  ]));
}
