/** Draws the tree of brokers: their states, successors of excluded brokers, and the traffic between them. */

import { bytes, count, s } from "/console/dom.js";
import { exclusions, handovers } from "/console/watch.js";

const WIDTH = 142;
const HEIGHT = 62;
const GAP = 26;
const LEVEL = 118;
const MARGIN = 22;
const FLOW_MS = 1100;
const [SCALE_MIN, SCALE_MAX] = [0.8, 1.15];

/** Return the centre of each broker's box. The root is a centre of the tree, so that the picture is flat. */
export function layout(names, links) {
  const around = Object.fromEntries(names.map((name) => [name, []]));
  for (const [a, b] of links) { around[a].push(b); around[b].push(a); }
  const far = (from) => {
    const order = [[from, null, 0]];
    const before = {};
    for (const [name, parent, depth] of order) {
      before[name] = parent;
      for (const next of around[name]) if (next !== parent) order.push([next, name, depth + 1]);
    }
    return { last: order[order.length - 1], before };
  };
  const end = far(names[0]).last[0];
  const { last, before } = far(end);
  let root = last[0];
  for (let up = 0; up < Math.floor(last[2] / 2); up++) root = before[root];
  const places = {};
  let leaves = 0;
  let depths = 0;
  const place = (name, parent, depth) => {
    depths = Math.max(depths, depth);
    const below = around[name].filter((next) => next !== parent);
    for (const next of below) place(next, name, depth + 1);
    const x = below.length ? (places[below[0]].x + places[below.at(-1)].x) / 2 : leaves++ * (WIDTH + GAP);
    places[name] = { x: x + (below.length ? 0 : WIDTH / 2), y: depth * LEVEL + HEIGHT / 2, parent };
  };
  place(root, null, 0);
  return { places, width: Math.max(1, leaves) * (WIDTH + GAP) - GAP, height: depths * LEVEL + HEIGHT };
}

const SIGNS = {
  up: ["ok", "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0"],
  down: ["bad", "M-5 -3l2 -2l3 3l3 -3l2 2l-3 3l3 3l-2 2l-3 -3l-3 3l-2 -2l3 -3z"],
  other: ["warn", "M0 -6l6 11h-12z"],
};

/** Return the drawing. `choose` is called with the name of a broker that the user selects. */
export function drawTree(watch, chosen, choose) {
  const { now } = watch;
  const names = Object.keys(now.brokers);
  const { places, width, height } = layout(names, now.links);
  const box = `${-MARGIN} ${-MARGIN} ${width + 2 * MARGIN} ${height + 2 * MARGIN}`;
  const excluded = exclusions(now);
  const tree = s("svg", { class: "tree", viewBox: box, role: "group", "aria-label": "Tree of brokers" },
    s("defs", {}, s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, s("path", { d: "M0 0l8 4l-8 4z" }))),
    now.links.map(([a, b]) => link(watch, places, a, b)),
    [...excluded].map(([name, [, successor]]) => replacement(places, name, successor)),
    names.map((name) => node(watch, places[name], name, name === chosen, choose)),
    [...handovers(now).keys()].flatMap((key) => key.split(", ")).filter((name) => places[name]).map((name) => region(places[name])),
  );
  tree.style.maxWidth = `${(width + 2 * MARGIN) * SCALE_MAX}px`;
  tree.style.minWidth = `${Math.min(width * SCALE_MIN, 5000)}px`;
  return tree;
}

function link({ now, traffic }, places, a, b) {
  const [upper, lower] = places[a].y <= places[b].y ? [places[a], places[b]] : [places[b], places[a]];
  const top = upper.y + HEIGHT / 2;
  const bottom = lower.y - HEIGHT / 2;
  const middle = (top + bottom) / 2;
  const d = `M${upper.x} ${top}C${upper.x} ${middle} ${lower.x} ${middle} ${lower.x} ${bottom}`;
  const isBroken = [[a, b], [b, a]].some(([from, to]) => now.brokers[from].links?.[to]?.up === false || now.brokers[from].state === "down");
  const rate = (traffic[`${a} ${b}`] ?? 0) + (traffic[`${b} ${a}`] ?? 0);
  const size = 1.5 + Math.min(7, Math.log10(1 + rate / 100) * 1.6);
  return s("g", {},
    s("path", { class: isBroken ? "link broken" : "link", d, "stroke-width": isBroken ? 2 : size }),
    !isBroken && rate > 2000 ? flow(d, Math.max(2.5, size * 0.6)) : null,
    isBroken ? null : s("text", { class: "muted rate", x: (upper.x + lower.x) / 2 + (lower.x < upper.x ? -8 : 8), y: middle + 4, "text-anchor": lower.x < upper.x ? "end" : "start" }, `${bytes(rate)}/s`),
  );
}

/** Moving dots. The drawing is replaced every second, so the dots start at their current positions. */
function flow(d, width) {
  const path = s("path", { class: "flow", d, "stroke-width": width });
  path.style.animationDelay = `${-(performance.now() % FLOW_MS)}ms`;
  return path;
}

/** Return an arrow from the broker that takes over to the excluded one. */
function replacement(places, name, successor) {
  const [from, to] = [places[successor], places[name]];
  if (!from || !to) return null;
  const side = to.x >= from.x ? 1 : -1;
  const [x1, y1, x2, y2] = [from.x + (side * WIDTH) / 2, from.y, to.x + (side * WIDTH) / 3, to.y - HEIGHT / 2 - 3];
  const isLevel = Math.abs(from.y - to.y) < HEIGHT;
  const bend = isLevel ? `${(x1 + x2) / 2} ${Math.min(y1, y2) - 60}` : `${Math.max(x1 * side, x2 * side) * side + side * 34} ${(y1 + y2) / 2 - 10}`;
  return s("g", {}, s("path", { class: "replaces", d: `M${x1} ${y1}Q${bend} ${x2} ${y2}` }, s("title", {}, `${successor} takes over for ${name}`)));
}

function region({ x, y }) {
  return s("rect", { class: "region", x: x - WIDTH / 2 - 7, y: y - HEIGHT / 2 - 7, width: WIDTH + 14, height: HEIGHT + 14, rx: 14 });
}

function node({ now, rates }, { x, y }, name, isChosen, choose) {
  const broker = now.brokers[name];
  const [kind, sign] = SIGNS[broker.state] ?? SIGNS.other;
  const rate = rates[name]?.delivered ?? rates[name]?.messages_in;
  const said = broker.state === "down" ? "down" : `${broker.clients} client${broker.clients === 1 ? "" : "s"}`;
  const more = broker.state === "up" ? `${count(rate ?? 0)}/s` : broker.state === "down" ? "no answer" : broker.state;
  const title = name.length > 11 ? `${name.slice(0, 10)}…` : name;
  const activate = (event) => { if (event.type === "click" || event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(name); } };
  return s("g", {
    class: `node ${broker.state.split(" ")[0]} ${isChosen ? "chosen" : ""}`, transform: `translate(${x - WIDTH / 2} ${y - HEIGHT / 2})`,
    role: "button", tabindex: 0, "aria-pressed": String(isChosen), "aria-label": `${[title, name === now.here ? "here" : "", said, more].filter(Boolean).join(" ")}. Broker ${name}, ${broker.state}`, "data-key": `node-${name}`,
    onclick: activate, onkeydown: activate,
  },
    s("rect", { width: WIDTH, height: HEIGHT, rx: 10 }),
    s("path", { class: kind, d: sign, transform: "translate(17 20)" }),
    s("text", { class: "name", x: 30, y: 25 }, title), " ",
    name === now.here ? s("text", { class: "muted", x: WIDTH - 11, y: 24, "text-anchor": "end" }, "here") : null, " ",
    s("text", { class: "muted", x: 12, y: 47 }, said), " ",
    s("text", { class: "muted", x: WIDTH - 11, y: 47, "text-anchor": "end" }, more));
}
