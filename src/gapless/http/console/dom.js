/** Creates elements and texts. External data is inserted as text, never as markup. */

const SVG = "http://www.w3.org/2000/svg";

/** @param {Element} node @param {Record<string, any>} props @param {any[]} children */
function filled(node, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node && !(node instanceof SVGElement) && typeof value !== "string") node[key] = value;
    else node.setAttribute(key === "className" ? "class" : key, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Create an HTML element. */
export const h = (tag, props = {}, ...children) => filled(document.createElement(tag), props, children);

/** Create an SVG element. */
export const s = (tag, props = {}, ...children) => filled(document.createElementNS(SVG, tag), props, children);

export const byId = (id) => document.getElementById(id);

/** Replace the children of an element. The focus and the scroll positions are kept. */
export function show(node, ...children) {
  const focused = node.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const scrolled = [...node.querySelectorAll(".scroll")].map(({ scrollLeft, scrollTop }) => [scrollLeft, scrollTop]);
  node.replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (focused) node.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  if (scrolled.some(([left, top]) => left || top)) node.querySelectorAll(".scroll").forEach((each, i) => { [each.scrollLeft, each.scrollTop] = scrolled[i] ?? [0, 0]; });
}

/** Create a table. Cells are texts or elements; a heading that begins with # marks a column of numbers. */
export function table(caption, headings, rows, empty = "Nothing.") {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  const isNumber = headings.map((heading) => heading.startsWith("#"));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, headings.map((heading, i) => h("th", { scope: "col", class: isNumber[i] ? "number" : "" }, heading.replace(/^#/, "") || h("span", { class: "unseen" }, "Actions"))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h("td", { class: isNumber[i] ? "number" : "" }, cell ?? "")))))));
}

export const pill = (kind, text) => h("span", { class: `pill ${kind}` }, text);

/** Ask for confirmation of an irreversible action. Resolves to the form's values, or null. */
export function ask({ title, text, action, fields = [] }) {
  const dialog = byId("dialog");
  return new Promise((resolve) => {
    const inputs = fields.map((field) => h("input", { name: field.name, value: field.value ?? "", class: "code" }));
    const done = (values) => { dialog.close(); resolve(values); };
    dialog.replaceChildren(h("form", { class: "form", method: "dialog", onsubmit: (event) => {
      event.preventDefault();
      done(Object.fromEntries(inputs.map((input) => [input.name, input.value.trim()])));
    } },
      h("h2", { id: "dialog-title" }, title), h("p", {}, text),
      fields.map((field, i) => h("label", {}, field.label, inputs[i])),
      h("div", { class: "row" }, h("button", { type: "button", onclick: () => done(null) }, "Cancel"), h("button", { class: "danger" }, action))));
    dialog.oncancel = () => resolve(null);
    dialog.showModal();
  });
}

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Return a number in a short form: 950, 12.3k, 4.5M. */
export function count(number) {
  if (!Number.isFinite(number)) return "–";
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(number) >= size) return `${(number / (unit === "k" ? 1e3 : size)).toPrecision(3)}${unit}`;
  }
  return number > 0 && number < 10 && number % 1 ? number.toFixed(1) : plain.format(number);
}

export function bytes(number) {
  if (!Number.isFinite(number)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  while (number >= 1000 && i < units.length - 1) { number /= 1000; i++; }
  return `${i && number < 100 ? number.toPrecision(2) : Math.round(number)} ${units[i]}`;
}

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const size = Math.abs(seconds);
  if (size < 1) return `${Math.round(seconds * 1000)} ms`;
  if (size < 120) return `${seconds.toFixed(size < 10 ? 1 : 0)} s`;
  if (size < 7200) return `${Math.round(seconds / 60)} min`;
  return size < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

/** Return the time of day of a date, or of seconds since 1970. */
export function clock(time, { millis = false } = {}) {
  const date = time instanceof Date ? time : new Date(typeof time === "number" ? time * 1000 : time);
  const text = date.toLocaleTimeString("en-GB");
  return millis ? `${text}.${String(date.getMilliseconds()).padStart(3, "0")}` : text;
}
