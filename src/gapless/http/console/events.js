/** The view of events: live ones by filter, history at any speed, and a form to publish a test event. */

import { client, session } from "/console/api.js";
import { byId, clock, h, show } from "/console/dom.js";
import { filterField, filterHelp } from "/console/filter_field.js";

const ROWS_MAX = 300;
const BATCH = 40;
const STEP_MAX_MS = 2000;
/** Attributes that the list of events omits, or shows in another way. */
const HIDDEN = ["causes", "datacontenttype"];

let parts = null;
let running = null;
let kept = [];
let chosen = null;

export const events = {
  title: "Events",
  enter(parameters) {
    if (parameters.has("since")) kept = [];
    const allowed = session.rights.subscribe ?? "TRUE";
    const filter = filterField("Filter", parameters.get("filter") ?? (allowed === "TRUE" ? "" : allowed));
    filter.input.placeholder = "topic = 'order' AND amount > 5";
    const since = select("From", [["", "now on"], ["1m", "1 minute ago"], ["10m", "10 minutes ago"], ["1h", "1 hour ago"], ["earliest", "the beginning"], ["at", "a position or time…"]]);
    const place = h("input", { class: "code", placeholder: "p1795053516080458 or 2026-11-19T01:58" });
    const placeLabel = h("label", { hidden: true }, "Position or time", place);
    since.input.onchange = () => { placeLabel.hidden = since.input.value !== "at"; };
    const until = select("Until", [["", "it is stopped"], ["now", "now"]]);
    const pace = select("Speed", [["", "at once"], ["1", "as it was"], ["10", "10 ×"], ["100", "100 ×"]]);
    if (!session.rights.history) for (const each of [since, until, pace]) { each.input.disabled = true; each.input.title = "this user may not read history"; }
    parts = {
      filter, since, place, placeLabel, until, pace,
      run: h("button", { class: "primary" }, "Start"), status: h("p", { role: "status", class: "small muted" }, "Stopped."),
      body: h("tbody"), held: h("span", { class: "pill warn", hidden: true }, "The list is paused while you look at it"), detail: h("section", { class: "card", hidden: true, "aria-label": "The chosen event" }), publish: publishForm(),
    };
    parts.list = h("div", { class: "scroll events", tabindex: 0, role: "region", "aria-label": "Events", onpointerleave: schedule, onfocusout: schedule },
      h("table", {}, h("caption", { class: "unseen" }, "Events, newest first"), h("thead", {}, h("tr", {}, ["Time", "Event", "Attributes", "Payload"].map((name) => h("th", { scope: "col" }, name)))), parts.body));
    if (parameters.get("since")) { since.input.value = "at"; placeLabel.hidden = false; place.value = parameters.get("since"); }
    draw();
    if (parameters.has("since") || parameters.has("run")) queueMicrotask(toggle);
    return [
      h("h1", {}, "Events"),
      h("form", { class: "card form", onsubmit: (event) => { event.preventDefault(); toggle(); } },
        h("div", { class: "row" }, filter.field, parts.run),
        h("div", { class: "row" }, since.label, placeLabel, until.label, pace.label),
        filterHelp(filter.input)),
      h("div", { class: "split" },
        h("section", { class: "card" }, h("div", { class: "head" }, h("h2", {}, "What comes"), parts.status, parts.held, h("button", { type: "button", class: "slim", onclick: () => { kept = []; show(parts.body); draw(); } }, "Clear")),
          parts.list),
        h("div", { class: "column" }, parts.detail, parts.publish)),
    ];
  },
  again(parameters) {
    if (parameters.has("since") || parameters.has("filter")) { stop(); show(byId("main"), this.enter(parameters)); }
  },
  leave() { stop(); parts = null; },
};

function select(label, options) {
  const input = h("select", {}, options.map(([value, text]) => h("option", { value }, text)));
  return { input, label: h("label", {}, label, input) };
}

function stop() {
  running?.abort();
  running = null;
  if (parts) parts.run.textContent = "Start";
}

/** Return `since` for the request. A time without a zone is in the browser's time zone. */
function begin() {
  const value = parts.since.input.value === "at" ? parts.place.value.trim() : parts.since.input.value;
  return /^\d{4}-\d\d-\d\dT[\d:.]+$/.test(value) ? new Date(value).toISOString() : value;
}

async function toggle() {
  if (running) return stop();
  const abort = (running = new AbortController());
  parts.run.textContent = "Stop";
  if (!(await parts.filter.check())) return stop();
  const say = (text) => { if (parts && running === abort) parts.status.textContent = text; };
  say("Connecting…");
  const note = (text) => { kept.unshift({ notice: text }); draw(); };
  const subscription = client.subscribe(parts.filter.text, {
    since: begin(), until: parts.until.input.value, signal: abort.signal,
    onSkipped: (gap) => note(gap.detail),
    onState: (state, reason) => {
      if (state === "connected") say("Live: every matching event published from now on is shown.");
      if (state === "disconnected") { say(`Interrupted: ${reason.message}. Connecting again…`); note("The connection was interrupted; the stream continues without a gap."); }
      if (state === "caught-up") note("All earlier events were shown; events from here on are live.");
    },
  });
  try {
    await show_all(subscription, Number(parts.pace.input.value), abort.signal);
    say("The end.");
  } catch (error) {
    say("Stopped.");
    if (!abort.signal.aborted) note(error.message);
  }
  if (running === abort) stop();
}

/** Take events no faster than they can be displayed; the broker serves later ones from history on request. */
async function show_all(subscription, pace, signal) {
  let taken = 0;
  let before = 0;
  for await (const event of subscription) {
    const time = Date.parse(event.time);
    if (pace && before && time > before) await pause(Math.min(STEP_MAX_MS, (time - before) / pace));
    before = time;
    if (signal.aborted) return;
    kept.unshift(event);
    if (kept.length > ROWS_MAX) kept.length = ROWS_MAX;
    if (++taken % BATCH === 0) await new Promise(requestAnimationFrame);
    schedule();
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let isDue = false;

/** Draw once in the next animation frame. */
function schedule() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => { isDue = false; draw(); });
}

/** Return whether the user points at the list or has the keyboard focus in it; the list then does not move. */
const isLookedAt = () => parts.list.matches(":hover") || parts.list.querySelector(":focus-visible") !== null;

function draw() {
  if (!parts) return;
  const isHeld = running && kept.length && parts.body.children.length > 1 && isLookedAt();
  parts.held.hidden = !isHeld;
  if (isHeld) return;
  if (!kept.length) return show(parts.body, h("tr", {}, h("td", { colspan: 4, class: "empty" }, "No event yet. Press Start, and publish an event.")));
  show(parts.body, kept.map((event) => event.row ??= event.notice ? h("tr", { class: "notice" }, h("td", { colspan: 4 }, event.notice)) : row(event)));
}

function row(event) {
  return h("tr", {},
    h("td", { class: "mono" }, event.time ? clock(event.time, { millis: true }) : ""),
    h("td", {}, h("button", { type: "button", class: "link", "data-key": event.id, onclick: () => choose(event) }, event.id)),
    h("td", {}, attributes(event)), h("td", {}, h("code", {}, payload(event, 80))));
}

export function attributes(event) {
  return h("span", { class: "attributes" }, Object.entries(event.attributes).filter(([name]) => !HIDDEN.includes(name)).map(([name, value]) => h("span", { class: "attribute" }, h("b", {}, `${name} `), String(value).slice(0, 80))),
    event.attributes.causes ? h("span", { class: "attribute" }, h("b", {}, "causes "), `${String(event.attributes.causes).split(" ").length}`) : null);
}

function payload(event, most) {
  const text = event.text ?? (event.data === undefined ? event.data_base64 ?? "" : JSON.stringify(event.data));
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

function choose(event) {
  chosen = event;
  parts.detail.hidden = false;
  show(parts.detail, detail(event, [
    event.position ? h("a", { class: "button", href: `#causes?position=${encodeURIComponent(event.position)}` }, "Causes and effects") : null,
    event.position ? h("a", { class: "button", href: `#events?since=${encodeURIComponent(event.position)}&filter=${encodeURIComponent(parts.filter.text)}` }, "Replay after it") : null,
    event.position ? h("button", { type: "button", onclick: () => { byId("publish-causes").value = event.position; byId("publish-attributes").focus(); } }, "Publish an effect") : null,
  ]));
}

/** Show all data of an event. */
export function detail(event, actions) {
  const { row: _, ...facts } = event;
  return [h("h2", {}, event.id), h("dl", { class: "facts" },
    [["Position", event.position], ["Time", event.time], ["Publisher", event.publisher]].filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, h("code", {}, value))])),
    h("pre", { class: "small", tabindex: 0, "aria-label": "The event as JSON" }, JSON.stringify(facts, null, 2)), h("div", { class: "row" }, actions)];
}

function publishForm() {
  const allowed = session.rights.publish;
  const names = h("textarea", { id: "publish-attributes", rows: 3, spellcheck: "false" });
  names.value = '{"topic": "test", "amount": 7}';
  const content = h("textarea", { rows: 2, spellcheck: "false" });
  content.value = "hello";
  const causes = h("input", { id: "publish-causes", class: "code", placeholder: "positions, separated by spaces" });
  const said = h("p", { role: "status", class: "small" });
  const button = h("button", { class: "primary", disabled: allowed === "FALSE" }, "Publish");
  const publish = async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const draft = { attributes: JSON.parse(names.value || "{}"), causes: causes.value.split(/\s+/).filter(Boolean), ...body(content.value) };
      const began = performance.now();
      const made = await client.publish(draft);
      show(said, pill(`Confirmed in ${Math.round(performance.now() - began)} ms`), " ", h("code", {}, made.id));
    } catch (error) {
      show(said, h("span", { class: "error" }, error instanceof SyntaxError ? `The attributes are not JSON: ${error.message}` : error.message));
    }
    button.disabled = false;
  };
  return h("form", { class: "card form", onsubmit: publish }, h("h2", {}, "Publish a test event"),
    h("label", {}, "Attributes, as JSON", names), h("label", {}, "Payload: text, or JSON", content), h("label", {}, "Direct causes", causes),
    h("div", { class: "row" }, button), said,
    allowed === "TRUE" ? null : h("p", { class: "muted small" }, allowed === "FALSE" ? "This user may not publish." : ["This user may publish ", h("code", {}, allowed)]));
}

const pill = (text) => h("span", { class: "pill ok" }, text);

function body(text) {
  if (!text.trim()) return {};
  try {
    const data = JSON.parse(text);
    return typeof data === "object" && data !== null ? { data } : { text };
  } catch {
    return { text };
  }
}
