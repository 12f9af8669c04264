/** A field for a filter that shows errors and their positions while the user types. */

import { send } from "/console/api.js";
import { h, show } from "/console/dom.js";

const PAUSE_MS = 250;
let count = 0;

/** `field` is the element; `check()` resolves to whether the filter can be used, and puts the caret at the error. */
export function filterField(label, value) {
  const id = `filter-${++count}`;
  const input = h("input", { class: "code", name: "filter", spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-describedby": id });
  input.value = value;
  const said = h("div", { id, "aria-live": "polite" });
  let timer = 0;
  let position = -1;
  const check = async () => {
    const text = input.value;
    try {
      const { hints } = await send("POST", "/api/filter", { filter: text.trim() || "TRUE" });
      if (input.value !== text) return false;
      position = -1;
      input.removeAttribute("aria-invalid");
      show(said, hints.map((hint) => h("p", { class: "hint" }, hint)));
      return true;
    } catch (error) {
      if (input.value !== text) return false;
      input.setAttribute("aria-invalid", "true");
      position = error.problem?.position ?? -1;
      show(said, complaint(text, error));
      return false;
    }
  };
  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(check, PAUSE_MS); });
  return {
    input,
    field: h("div", { class: "wide" }, h("label", {}, label, input), said),
    get text() { return input.value.trim() || "TRUE"; },
    async check() {
      const isGood = await check();
      if (!isGood && position >= 0) { input.focus(); input.setSelectionRange(position, Math.min(position + 1, input.value.length)); }
      return isGood;
    },
  };
}

/** Show the filter with the position of the error marked, and the error. */
function complaint(text, error) {
  const at = error.problem?.position;
  if (at === undefined) return h("p", { class: "error" }, error.message);
  const points = [...text];
  return h("p", { class: "error" }, points.slice(0, at).join(""), h("mark", {}, points[at] ?? "⌷"), points.slice(at + 1).join(""), "\n", h("span", {}, `At character ${at + 1}: ${error.problem.detail}`));
}

const EXAMPLES = [
  ["topic = 'order'", "strings in single quotes"],
  ["amount > 5 AND NOT paid", "AND, OR, NOT; numbers and booleans"],
  ["price BETWEEN 1 AND 10", "also <, <=, =, <>, >=, >"],
  ["country IN ('DE', 'FR')", "one of these values"],
  ["name LIKE 'gap%'", "% is any text, _ one character"],
  ["amount * 1.19 > total", "arithmetic: + - * /"],
  ["causes IS NOT NULL", "the event has the attribute"],
  ['"content-type" = \'text\'', "other names in double quotes"],
];

/** Help with the syntax. A click on an example puts it into the field. */
export function filterHelp(input) {
  const use = (text) => { input.value = text; input.dispatchEvent(new Event("input")); input.focus(); };
  return h("details", { class: "small" }, h("summary", {}, "How filters are written"),
    h("dl", { class: "facts" }, EXAMPLES.map(([text, what]) => [h("dt", {}, h("button", { type: "button", class: "slim mono", onclick: () => use(text) }, text)), h("dd", {}, what)])));
}
