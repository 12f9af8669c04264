/** The view of the problems found in the network, and of the recent log of a broker. */

import { clock, h, pill, show } from "/console/dom.js";
import { finding } from "/console/network.js";

const LINES_MAX = 500;
const ORDER = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

let parts = null;
let lines = [];
/** The broker of the lines, and its start. */
let of = "";

export const log = {
  title: "Doctor and log",
  needs: "status",
  enter() {
    forget();
    const broker = h("select", { onchange: () => { forget(); draw(); dispatchEvent(new Event("topics")); } });
    const level = h("select", { onchange: draw }, ["INFO", "WARNING", "ERROR"].map((name) => h("option", { value: name }, `${name.toLowerCase()} and above`)));
    const words = h("input", { type: "search", oninput: draw, placeholder: "words" });
    parts = { broker, level, words, doctor: h("div", { class: "findings" }), body: h("tbody"), said: h("p", { class: "muted small", role: "status" }) };
    return [
      h("h1", {}, "Doctor and log"),
      h("section", { class: "card" }, h("h2", {}, "Findings of the doctor"), parts.doctor),
      h("section", { class: "card" }, h("h2", {}, "Recent log"), h("div", { class: "row" }, h("label", {}, "Broker", broker), h("label", {}, "Level", level), h("label", { class: "wide" }, "With the words", words)), parts.said,
        h("div", { class: "scroll log", tabindex: 0, role: "region", "aria-label": "Log" }, h("table", {}, h("caption", { class: "unseen" }, "Log, newest first"), h("thead", {}, h("tr", {}, ["Time", "Level", "Message"].map((name) => h("th", { scope: "col" }, name)))), parts.body))),
    ];
  },
  leave() { parts = null; },
  topics: () => [["topic", "log"], ["broker", parts?.broker.value ?? ""]],
  see(topic, answer, problem) {
    if (!parts) return;
    if (problem) { parts.said.textContent = problem.detail; return; }
    if (of !== answer.run) { forget(); of = answer.run; }
    const last = lines[0]?.number ?? 0;
    lines.unshift(...answer.lines.filter((line) => line.number > last).reverse());
    lines.length = Math.min(lines.length, LINES_MAX);
    draw();
  },
  update(watch) {
    if (!parts) return;
    const names = Object.keys(watch.now.brokers);
    if (parts.broker.options.length !== names.length) {
      show(parts.broker, names.map((name) => h("option", { value: name }, name)));
      parts.broker.value = watch.now.here;
    }
    show(parts.doctor, watch.now.findings.length ? watch.now.findings.map(finding) : h("p", { class: "finding good" }, "It found no problem."));
  },
};

function forget() {
  lines = [];
  of = "";
}

function draw() {
  const least = ORDER.indexOf(parts.level.value);
  const words = parts.words.value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (line) => `${line.message} ${JSON.stringify(line.facts)}`.toLowerCase();
  const shown = lines.filter((line) => ORDER.indexOf(line.level.toUpperCase()) >= least && words.every((word) => text(line).includes(word)));
  parts.said.textContent = `${shown.length} of the last ${lines.length} lines`;
  show(parts.body, shown.map((line) => h("tr", {}, h("td", {}, clock(line.time)), h("td", {}, pill({ ERROR: "bad", CRITICAL: "bad", WARNING: "warn" }[line.level.toUpperCase()] ?? "", line.level.toLowerCase())), h("td", {}, line.message, " ", h("span", { class: "facts-of" }, Object.entries(line.facts).map(([key, value]) => `${key}=${value}`).join(" "))))));
}
