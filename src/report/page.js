// SPDX-License-Identifier: Apache-2.0
// The page of a report: helpers, the theme, cards, advice, recipe. The other files of the script
// follow: a section each, and the start.
"use strict";

let D = {};      // what is shown, read from the element "data"
let layers = []; // rows of the table, in the order the network computes them

// --- helpers: text is only ever set as text ---

const $ = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, f] of Object.entries(value)) element.addEventListener(event, f);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) element.append(child);
  return element;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// --- numbers ---

const isNumber = (v) => typeof v === "number" && isFinite(v);
const grouped = (v) => Math.round(v).toLocaleString("en-US");

// As many digits as tell something: 1234, 12.3, 0.0123, 1.2e-7.
function short(v, digits = 3) {
  if (!isNumber(v)) return "–";
  if (v === 0) return "0";
  const size = Math.abs(v);
  if (size >= 1e6 || size < 1e-4) return minus(v.toExponential(digits - 1).replace("e+", "e"));
  if (size >= 1000) return minus(grouped(v));
  return minus(String(Number(v.toPrecision(digits))));
}

const minus = (s) => s.replace(/-/g, "−");
const signed = (v, digits) => (v >= 0 ? "+" : "−") + Math.abs(v).toFixed(digits);

// Noise over signal in percent, with the decimal point always at the same place.
function percent(v) {
  if (!isNumber(v)) return "";
  const p = v * 100;
  return p > 0 && p < 0.0005 ? "< 0.001" : p >= 1e6 ? short(p) : p.toFixed(3);
}

const decibel = (noise) => (noise > 0 ? minus((-10 * Math.log10(noise)).toFixed(1)) + " dB" : "∞");
const milliseconds = (v) => (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2)) + " ms";

function bytes(v) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]])
    if (v >= size) return (v / size).toFixed(v / size >= 100 ? 0 : 2) + " " + unit;
  return v + " B";
}

function count(v) {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]])
    if (v >= size) return (v / size).toPrecision(3) + " " + unit;
  return String(v);
}

const plural = (n, word) => grouped(n) + " " + word + (n === 1 ? "" : "s");

// --- theme: the system's, until the button was pressed ---

function storedTheme() {
  try { return localStorage.getItem("octet-theme"); } catch { return null; }
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  const button = $("theme");
  if (button) button.textContent = name === "dark" ? "Light" : "Dark";
  if (button) button.setAttribute("aria-label", "Switch to the " + button.textContent.toLowerCase() + " theme");
}

const systemTheme = matchMedia("(prefers-color-scheme: dark)");
setTheme(storedTheme() || (systemTheme.matches ? "dark" : "light")); // before anything is drawn
systemTheme.addEventListener("change", (e) => storedTheme() || setTheme(e.matches ? "dark" : "light"));

function startTheme() {
  setTheme(document.documentElement.dataset.theme);
  $("theme").addEventListener("click", () => {
    const name = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    setTheme(name);
    try { localStorage.setItem("octet-theme", name); } catch { /* from disk it may be refused */ }
  });
}

// --- cards ---

function meter(kind, value, most) {
  const bar = el("i", { class: kind });
  bar.style.width = (most > 0 ? Math.max(0, Math.min(1, value / most)) * 100 : 0) + "%";
  return el("div", { class: "meter", "aria-hidden": "true" }, bar);
}

function pair(values, format) {
  const most = Math.max(...values);
  return el("dl", { class: "pairs" },
    el("dt", null, "float"), el("dd", null, meter("float", values[0], most)), el("dd", null, format(values[0])),
    el("dt", null, "INT8"), el("dd", null, meter("int", values[1], most)), el("dd", null, format(values[1])));
}

function card(name, big, small, body, about) {
  return el("div", { class: "card" }, el("h3", null, name),
    el("p", { class: "big" }, big, small ? el("small", null, " " + small) : null), body,
    about ? el("p", { class: "about" }, about) : null);
}

function ratio(values, better, worse) {
  const gain = values[0] / values[1];
  return gain >= 1 ? [gain.toFixed(2) + "×", better] : [(1 / gain).toFixed(2) + "×", worse];
}

function accuracyCard() {
  const [name, before, after] = D.accuracy.rows[0], n = D.accuracy.noise;
  const change = after - before, within = n && Math.abs(change) <= n.change;
  return card("Accuracy", el("span", { class: change < -0.01 && !within ? "bad" : "" }, signed(change, 4)), name + (n ? " ± " + n.change.toFixed(4) : ""),
    pair([before, after], (v) => v.toFixed(4)), [D.accuracy.set ? el("span", null, "measured on " + D.accuracy.set) : null,
      within ? el("span", { class: "line" }, "the change is within the noise") : null]);
}

function integerCard() {
  const s = D.summary || summaryOfLayers();
  if (!s || !s.layers) return null;
  const share = (v) => (v * 100).toFixed(1) + " %";
  const bar = (name, v) => [el("dt", null, name), el("dd", null, meter("int", v, 1)), el("dd", null, share(v))];
  return card("In integers", grouped(s.integer), "of " + plural(s.layers, "layer") + " with weights",
    el("dl", { class: "pairs" }, bar("multiply-adds", s.macs), bar("weights", s.weights)), s.tail || null);
}

// Without the figures of a quantization, those of the analysis.
function summaryOfLayers() {
  const s = { layers: 0, integer: 0, macs: 0, weights: 0 };
  let macs = 0, weights = 0;
  for (const l of layers) {
    if (!l.params) continue;
    const share = l.isInteger ? 1 : 0;
    s.layers++; s.integer += share;
    macs += l.macs || 0; weights += l.params;
    s.macs += share * (l.macs || 0); s.weights += share * l.params;
  }
  s.macs = macs ? s.macs / macs : 0;
  s.weights = weights ? s.weights / weights : 0;
  return s;
}

function startSummary() {
  const list = [];
  if (D.bytes) list.push(card("File", ...ratio(D.bytes, "smaller", "larger"), pair(D.bytes, bytes)));
  if (D.ms)
    list.push(card("Time of a picture", ...ratio(D.ms, "faster", "slower"), pair(D.ms, milliseconds),
      [el("span", null, "median" + (D.threads ? ", " + plural(D.threads, "thread") : "") + ", measured in turns"),
        D.p10 && D.p90 ? el("span", { class: "line" }, "10th to 90th percentile: float " + spreadText(0) + ", INT8 " + spreadText(1)) : null,
        isBusy() ? el("span", { class: "line bad" }, "the machine was busy: load " + D.load.toFixed(1) + " on " + plural(D.cpus, "CPU")) : null]));
  if (D.accuracy && D.accuracy.rows.length) list.push(accuracyCard());
  list.push(integerCard());
  fill($("cards"), null, list);
  if (D.floatPath || D.int8Path) $("files").textContent = [D.floatPath, D.int8Path].filter(Boolean).join(" → ");
}

// --- advice ---

function copyable(text) {
  const button = el("button", { type: "button", class: "quiet no-print" }, "Copy");
  button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
    catch { getSelection().selectAllChildren(button.previousSibling); button.textContent = "Selected"; }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return el("div", { class: "code" }, el("pre", null, text), button);
}

function adviceItem(a) {
  const index = layers.findIndex((l) => l.name === a.layer);
  return el("li", null,
    el("p", null, a.text, isNumber(a.gain) ? el("span", { class: "gain" },
      " Removes about " + (a.gain * 100).toFixed(a.gain < 0.1 ? 1 : 0) + " % of the error.") : null),
    a.option ? copyable(a.option) : null,
    index >= 0 ? el("button", { type: "button", class: "link no-print", on: { click: () => selectLayer(index, "table") } },
      "Show this layer") : null);
}

function startAdvice() {
  if (!D.layers.length) return;
  $("advice").hidden = false;
  if (!D.advice.length) {
    $("advice-lead").textContent = "Nothing stands out: no single change is expected to bring the quantized network much nearer to the float one.";
    return;
  }
  $("advice-lead").textContent = "What would bring the quantized network nearer to the float one, best first. " +
    "Add a line to the octet quantize command to try it.";
  fill($("advice-list"), null, D.advice.map(adviceItem));
}

// --- recipe ---

function startReproduce() {
  const parts = [["Command", D.command, true], ["Recipe", D.recipe, true], ["Machine", D.machine],
    ["Versions", D.versions]].filter((p) => p[1]);
  if (!parts.length) return;
  $("reproduce").hidden = false;
  for (const [name, text, code] of parts)
    $("reproduce-list").append(el("h3", null, name), code ? copyable(text.trimEnd()) : el("p", { class: "text" }, text));
}
