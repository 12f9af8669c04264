/** Plots of the most important metrics: the samples that brokers have stored, and those since the page was opened. */

import { bytes, clock, count, duration, h, s, show } from "/console/dom.js";

const WINDOW_S = 10;
const COLOURS = 8;
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [420, 150, 52, 18, 8];

const each = (key) => (samples) => perBroker(samples, (now) => now[key]);

const CHARTS = [
  { title: "Published", unit: (value) => `${count(value)}/s`, series: each("published"), total: true },
  { title: "Delivered", unit: (value) => `${count(value)}/s`, series: each("delivered"), total: true },
  { title: "Confirmation latency", unit: duration, least: 0.001, series: (samples) => percentiles(samples, "confirmation") },
  { title: "Delivery latency", unit: duration, least: 0.001, series: (samples) => percentiles(samples, "delivery") },
  { title: "Lag of the slowest client", unit: (value) => `${count(value)} events`, series: each("lag") },
  { title: "History", unit: bytes, least: 1000, series: each("history") },
  { title: "Sent by brokers", unit: (value) => `${bytes(value)}/s`, series: each("bytes_out"), total: true },
  { title: "Event loop late", unit: duration, least: 0.01, series: each("late") },
];

let figures = null;
let hovered = null;

export const metrics = {
  title: "Metrics",
  needs: "status",
  enter() {
    figures = CHARTS.map(() => h("figure", { class: "card chart" }));
    return [h("div", { class: "head" }, h("h1", {}, "Metrics"), h("p", { class: "muted small" }, "The last half hour, as far as brokers keep samples. Prometheus reads all metrics from ", h("a", { href: "/metrics" }, "/metrics"), ".")), h("div", { class: "charts" }, figures)];
  },
  leave() { figures = null; },
  update(watch) {
    if (!figures) return;
    const samples = watch.samples;
    if (!samples.length) return;
    CHARTS.forEach((chart, i) => show(figures[i], draw(chart, samples)));
  },
};

function perBroker(samples, value) {
  const names = [...new Set(samples.flatMap(({ brokers }) => Object.keys(brokers)))].sort();
  return names.map((name) => ({ name, values: samples.map(({ brokers }) => brokers[name] && value(brokers[name])) })).filter(({ values }) => values.some((one) => one !== undefined));
}

/** Return p50 and p99 over all brokers, from the growth of the buckets within the last seconds. */
function percentiles(samples, key) {
  const made = [{ name: "p50", share: 0.5, values: [] }, { name: "p99", share: 0.99, values: [] }];
  let isKnown = false;
  let first = 0;
  samples.forEach(({ time, brokers }, i) => {
    while (first + 1 < i && time - samples[first + 1].time >= WINDOW_S) first++;
    const before = samples[first].brokers;
    const grown = new Map();
    let total = 0;
    for (const [name, { [key]: now }] of Object.entries(brokers)) {
      if (!now) continue;
      isKnown = true;
      const old = before[name]?.[key];
      if (!old || now.count < old.count) continue;
      total += now.count - old.count;
      for (const [bound, sum] of Object.entries(now.buckets)) grown.set(Number(bound), (grown.get(Number(bound)) ?? 0) + sum - (old.buckets[bound] ?? 0));
    }
    const bounds = [...grown].sort(([a], [b]) => a - b);
    for (const one of made) one.values.push(total ? quantile(bounds, total * one.share) : undefined);
  });
  return isKnown ? made : [];
}

/** Return the value of a rank in cumulative buckets, interpolated linearly within its bucket. */
function quantile(bounds, rank) {
  let [lower, below] = [0, 0];
  for (const [bound, sum] of bounds) {
    if (sum >= rank) return lower + ((bound - lower) * (rank - below)) / Math.max(1, sum - below);
    [lower, below] = [bound, sum];
  }
  return lower;
}

function draw(chart, samples) {
  const series = chart.series(samples);
  const sum = (i) => { const known = series.map(({ values }) => values[i]).filter((one) => one !== undefined); return known.length ? (chart.total ? known.reduce((a, b) => a + b, 0) : Math.max(...known)) : undefined; };
  const end = samples.length - 1;
  const at = hovered === null ? end : Math.min(end, Math.max(0, hovered));
  const now = sum(at);
  const shown = now === undefined ? "–" : chart.unit(now);
  const caption = h("figcaption", {}, chart.title, h("span", {}, shown));
  if (!series.length) return [caption, h("p", { class: "empty" }, "Brokers of this protocol do not report it.")];
  const most = nice(Math.max(chart.least ?? 1, ...series.flatMap(({ values }) => values.filter((one) => one !== undefined))));
  const [from, until] = [samples[0].time, Math.max(samples[end].time, samples[0].time + 60)];
  const x = (time) => LEFT + ((time - from) / (until - from)) * (WIDTH - LEFT - 6);
  const y = (value) => TOP + (1 - value / most) * (HEIGHT - BOTTOM - TOP);
  const svg = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${chart.title}: ${shown} now` },
    [0, 0.5, 1].map((part) => [s("line", { class: "grid", x1: LEFT, x2: WIDTH - 6, y1: y(part * most), y2: y(part * most) }), s("text", { class: "muted", x: LEFT - 6, y: y(part * most) + 4, "text-anchor": "end" }, chart.unit(part * most).replace("/s", "").replace(" events", ""))]),
    s("text", { class: "muted", x: LEFT, y: HEIGHT - 3 }, clock(from)), s("text", { class: "muted", x: WIDTH - 6, y: HEIGHT - 3, "text-anchor": "end" }, clock(until)),
    series.flatMap(({ values }, i) => pieces(values).map((piece) => s("polyline", { class: `c${i % COLOURS}`, points: piece.map((k) => `${x(samples[k].time).toFixed(1)},${y(values[k]).toFixed(1)}`).join(" ") }))),
    hovered === null ? null : s("line", { class: "cursor", x1: x(samples[at].time), x2: x(samples[at].time), y1: TOP, y2: HEIGHT - BOTTOM }));
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const time = from + (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - 6) * (until - from);
    hovered = samples.findIndex((sample) => sample.time >= time);
    if (hovered < 0) hovered = null;
  });
  svg.addEventListener("pointerleave", () => { hovered = null; });
  return [caption, svg, h("p", { class: "keys" }, series.slice(0, 12).map(({ name, values }, i) => h("span", {}, h("i", { class: `c${i % COLOURS}` }), `${name} `, h("b", {}, values[at] === undefined ? "–" : chart.unit(values[at])))))];
}

/** Return the runs of numbers without a gap. */
function pieces(values) {
  const found = [[]];
  values.forEach((value, i) => { if (value === undefined) found.push([]); else found.at(-1).push(i); });
  return found.filter((piece) => piece.length > 1);
}

/** Return the next larger round number. */
function nice(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * size).find((round) => round >= value);
}
