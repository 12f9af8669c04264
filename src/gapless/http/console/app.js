/** The frame of the console: login, views, and the one stream that all views share. */

import { get, session } from "/console/api.js";
import { byId, h, show } from "/console/dom.js";
import { causes } from "/console/causes.js";
import { clients } from "/console/clients.js";
import { events } from "/console/events.js";
import { follow, pause } from "/console/live.js";
import { log } from "/console/log.js";
import { metrics } from "/console/metrics.js";
import { network } from "/console/network.js";
import { watch } from "/console/watch.js";

const HIDDEN_MS = 5000;
const VIEWS = { network, clients, events, causes, metrics, log };

let current = null;
let hiding = 0;
let isPaused = false;

function route() {
  const [name, query = ""] = location.hash.slice(1).split("?");
  if (name === "main") return;
  const chosen = VIEWS[name] ? name : session.rights.status === false ? "events" : "network";
  const view = VIEWS[chosen];
  for (const link of byId("views").children) {
    link.toggleAttribute("aria-current", false);
    if (link.hash === `#${chosen}`) link.setAttribute("aria-current", "page");
  }
  if (current !== view) current?.leave?.();
  document.title = `${view.title} · ${session.me.network} · Gapless`;
  const parameters = new URLSearchParams(query);
  if (view.needs && !session.rights[view.needs]) {
    show(byId("main"), h("h1", {}, view.title), h("p", { class: "card" }, `User ${session.me.user} may not see this; it takes ${view.needs} = true in the users' file.`));
    current = null;
    return;
  }
  const isNew = current !== view;
  current = view;
  if (isNew) show(byId("main"), view.enter(parameters));
  else view.again?.(parameters);
  if (watch.now) view.update?.(watch);
  if (isNew) watchAll();
}

/** Watch the network, and the additional topics of the current view. */
function watchAll() {
  isPaused = document.hidden;
  if (!session.me?.rights.status || isPaused) return;
  const query = new URLSearchParams([["topic", "network"], ...(current?.topics?.() ?? [])]);
  follow(query, (topic, answer, problem) => {
    if (topic !== "network") return current?.see?.(topic, answer, problem);
    watch.see(answer);
    current?.update?.(watch);
    health();
  }, (error) => {
    if (error.status === 401 || error.status === 403) { signIn(error.message); return false; }
    watch.miss(error);
    health();
  });
}

/** Load the samples that brokers have stored, so that plots begin before the page was opened. */
function recall() {
  watch.recent = [];
  if (session.me?.rights.status) get("/api/samples").then((answer) => watch.remember(answer), () => {});
}

/** Stop watching while the page is hidden, to save the broker work. */
function seenOrHidden() {
  clearTimeout(hiding);
  if (document.hidden) { hiding = setTimeout(() => { isPaused = true; pause(); }, HIDDEN_MS); return; }
  if (!isPaused) return;
  isPaused = false;
  recall();
  watchAll();
}

function health() {
  const pill = byId("health");
  const say = (kind, text) => { pill.className = `pill ${kind}`; if (pill.textContent !== text) pill.textContent = text; };
  if (watch.problem) return say("bad", "This broker does not answer");
  const brokers = Object.values(watch.now.brokers);
  const down = brokers.filter((broker) => broker.state === "down").length;
  const held = brokers.filter((broker) => broker.state !== "up" && broker.state !== "down").length;
  byId("network-facts").textContent = `${brokers.length} brokers, f = ${watch.now.f}, ${watch.now.protocol}, seen from ${watch.now.here}`;
  if (down) return say("bad", `✕ ${down} of ${brokers.length} brokers down`);
  if (held) return say("warn", `▲ ${held} of ${brokers.length} brokers held up`);
  say("ok", `● All ${brokers.length} brokers up`);
}

function signIn(reason = "") {
  session.me = null;
  pause();
  current?.leave?.();
  current = null;
  byId("views").replaceChildren();
  byId("sign-out").hidden = true;
  byId("user").textContent = "";
  byId("health").className = "pill";
  byId("health").textContent = "";
  const input = h("input", { type: "password", autocomplete: "off", class: "code", required: true, "aria-describedby": "login-error" });
  const error = h("p", { class: "error", id: "login-error", role: "alert" }, session.token || reason.includes("may not") ? reason : "");
  show(byId("main"), h("form", { class: "card form login", onsubmit: (event) => { event.preventDefault(); session.token = input.value.trim(); start(); } },
    h("h1", {}, "Sign in"),
    h("p", {}, "Paste a token of a user of this network. It stays in this tab until you close it or sign out."),
    h("label", {}, "Token", input), error,
    h("div", { class: "row" }, h("button", { class: "primary" }, "Sign in")),
    h("p", { class: "muted small" }, "With a client certificate there is nothing to type: import it into the browser, and load this page again.")));
  input.focus();
}

async function start() {
  try {
    session.me = await get("/api/me");
  } catch (error) {
    if (error.status === 401) { const said = error.message; const had = session.token; signIn(had ? said : ""); session.token = ""; return; }
    show(byId("main"), h("p", { class: "card error", role: "alert" }, `${error.message}. Trying again…`));
    setTimeout(start, 2000);
    return;
  }
  byId("network-name").textContent = session.me.network;
  byId("network-facts").textContent = `broker ${session.me.broker}`;
  byId("user").textContent = session.me.user;
  byId("sign-out").hidden = !session.token;
  show(byId("views"), Object.entries(VIEWS).map(([name, view]) => h("a", { href: `#${name}` }, view.title)));
  recall();
  route();
}

byId("sign-out").addEventListener("click", () => { session.token = ""; location.hash = ""; location.reload(); });
byId("theme").addEventListener("click", () => {
  const isDark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("gapless-theme", document.documentElement.dataset.theme);
});
if (localStorage.getItem("gapless-theme")) document.documentElement.dataset.theme = localStorage.getItem("gapless-theme");
addEventListener("topics", watchAll);
document.addEventListener("visibilitychange", seenOrHidden);
addEventListener("hashchange", () => session.me && route());
start();
