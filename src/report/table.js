// SPDX-License-Identifier: Apache-2.0
// The table of layers: sorted and searched as an array; only the rows that are shown are made.

const PAGE = 25; // rows that are made at once
const view = { sort: "index", down: false, words: "", state: "all", shown: PAGE, rows: [], open: new Set(), selected: -1 };

const rangeOf = (l) => {
  const p = l.makes[0] || l.reads[0];
  return p ? [l.makes.length ? "out" : "in", p.low, p.high] : null;
};
const errorOf = (e) => (e ? e[0] : undefined);

// A column: its heading, what it sorts by, what a cell shows.
const columns = [
  { key: "index", label: "#", num: true, by: (l) => l.index, cell: (l) => String(l.index + 1), class: "index" },
  { key: "name", label: "Layer", by: (l) => l.name, class: "name", cell: nameCell },
  { key: "op", label: "Operator", by: (l) => l.op, cell: (l) => l.op },
  { key: "bits", label: "Bits", title: "W: of the weights, A: of the activations it reads", by: (l) => l.weightBits || l.inputBits, cell: bitsCell, class: "bits" },
  { key: "range", label: "Range", num: true, by: (l) => (rangeOf(l) ? rangeOf(l)[2] - rangeOf(l)[1] : undefined), cell: rangeCell, class: "range" },
  { key: "alone", label: "Error alone, %", title: "only this layer quantized", num: true, by: (l) => errorOf(l.alone), cell: (l) => percent(errorOf(l.alone)), class: "err" },
  { key: "all", label: "Error all, %", title: "everything quantized", num: true, by: (l) => errorOf(l.all), cell: (l) => percent(errorOf(l.all)), class: "err" },
  { key: "float", label: "Float, ms", num: true, by: (l) => l.floatMs, cell: (l) => timeCell(l.floatMs) },
  { key: "int8", label: "INT8, ms", num: true, by: (l) => l.int8Ms, cell: (l) => timeCell(l.int8Ms) },
  { key: "state", label: "State", by: (l) => (l.isInteger ? "" : "float " + (l.reason || "")), cell: stateCell, class: "state-cell" },
];
let shownColumns = columns;

// A long name goes on in the next line after a slash (or a dot, where it has none), not in the middle of a word.
function breakable(name) {
  return name.split(name.includes("/") ? /(?<=\/)/ : /(?<=\.)/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));
}
function nameCell(l) {
  return el("button", { type: "button", "aria-expanded": String(view.open.has(l.index)) }, el("span", null, breakable(l.name || "(no name)")));
}
function bitsCell(l) {
  return (l.weightBits ? "W" + l.weightBits : "") + (l.inputBits ? "A" + l.inputBits : "");
}
function rangeCell(l) {
  const r = rangeOf(l);
  return r ? el("span", null, el("span", { class: "tag" }, r[0] + " "), short(r[1]) + " … " + short(r[2])) : "";
}
function timeCell(ms) {
  return isNumber(ms) ? ms.toFixed(3) : "";
}
function stateCell(l) {
  return [el("span", { class: "state " + (l.isInteger ? "int" : "float") }, l.isInteger ? "integer" : "float"),
    l.reason ? el("span", { class: "reason" }, l.reason) : null];
}

// How far a bar goes: five decades of noise below the largest.
function share(noise, most) {
  return noise > 0 && most > 0 ? Math.max(0, 1 + Math.log10(noise / most) / 5) : 0;
}

// --- which rows, in which order ---

function compare(a, b) {
  const empty = (v) => v === undefined || v === null || v === "";
  if (empty(a) || empty(b)) return empty(a) - empty(b); // what is not known comes last, both ways
  const order = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
  return view.down ? -order : order;
}

function arrange() {
  const by = columns.find((c) => c.key === view.sort).by;
  const words = view.words.toLowerCase().split(/\s+/).filter(Boolean);
  view.rows = layers.filter((l) => (view.state === "all" || l.isInteger === (view.state === "integer")) &&
    words.every((w) => l.text.includes(w)));
  const keys = new Map(view.rows.map((l) => [l, by(l)]));
  view.rows.sort((a, b) => compare(keys.get(a), keys.get(b)) || a.index - b.index);
}

// --- rows ---

function makeRow(l) {
  const cells = shownColumns.map((c) => {
    const cell = el("td", { class: ((c.num ? "num " : "") + (c.class || "")) || null, "data-label": c.key === "name" ? null : c.label },
      c.cell(l));
    if (c.class === "err") cell.style.setProperty("--share", share(c.by(l), view.most[c.key]) * 92 + "%");
    return cell;
  });
  return el("tr", { class: "row" + (view.selected === l.index ? " selected" : ""), "data-index": l.index }, cells);
}

function addRows(from, to) {
  const part = document.createDocumentFragment();
  for (const l of view.rows.slice(from, to)) {
    part.append(makeRow(l));
    if (view.open.has(l.index)) part.append(makeDetail(l));
  }
  $("table").tBodies[0].append(part);
}

function showCount() {
  const shown = Math.min(view.shown, view.rows.length), n = view.rows.length;
  $("count").textContent = n === 0 ? "No layer fits." : "Showing " + (shown < n ? shown + " of " : "") + plural(n, "layer") +
    (n < layers.length ? " (of " + grouped(layers.length) + ")" : "") + ".";
  const more = (text, rows) => el("button", { type: "button", class: "quiet", on: { click: () => showMore(rows) } }, text);
  $("more").replaceChildren(...(shown < n ? [more("Show " + Math.min(100, n - shown) + " more", 100)]
    .concat(n - shown > 100 ? [more("Show all " + grouped(n), n)] : []) : []));
}

function showMore(rows) {
  const from = Math.min(view.shown, view.rows.length);
  view.shown = from + rows;
  addRows(from, view.shown);
  showCount();
}

function render() {
  arrange();
  $("table").tBodies[0].replaceChildren();
  addRows(0, view.shown);
  showCount();
  for (const th of $("table").tHead.rows[0].cells) {
    if (th.dataset.key === view.sort) th.setAttribute("aria-sort", view.down ? "descending" : "ascending");
    else th.removeAttribute("aria-sort");
  }
  $("sort-by").value = view.sort + (view.down ? " down" : "");
}

// Numbers start with the largest: that is what one looks for.
function sortBy(key, down) {
  const column = columns.find((c) => c.key === key);
  view.down = down !== undefined ? down : view.sort === key ? !view.down : Boolean(column.num) && key !== "index";
  view.sort = key;
  view.shown = PAGE;
  render();
}

// --- opening and finding ---

function toggle(index) {
  const row = $("table").querySelector('tr.row[data-index="' + index + '"]');
  const open = !view.open.has(index);
  if (open) view.open.add(index); else view.open.delete(index);
  if (!row) return;
  row.querySelector("td.name button").setAttribute("aria-expanded", String(open));
  if (open) row.after(makeDetail(layers[index]));
  else row.nextSibling.remove();
}

// From elsewhere in the page: `to` is "table" or "graph".
function selectLayer(index, to) {
  const old = $("table").querySelector("tr.selected");
  if (old) old.classList.remove("selected");
  view.selected = index;
  markNode(layers[index], to === "graph");
  if (!view.rows.includes(layers[index])) {
    view.words = $("search").value = "";
    view.state = "all";
    $("states").querySelector("input").checked = true;
    render();
  }
  const at = view.rows.indexOf(layers[index]);
  if (at >= view.shown) showMore(at + PAGE - view.shown);
  const row = $("table").querySelector('tr.row[data-index="' + index + '"]');
  row.classList.add("selected");
  if (to !== "table") return;
  if (!view.open.has(index)) toggle(index);
  row.scrollIntoView({ block: "start" });
  row.querySelector("button").focus({ preventScroll: true });
}

function startTools() {
  $("search").addEventListener("input", (e) => { view.words = e.target.value; view.shown = PAGE; render(); });
  const n = layers.filter((l) => l.isInteger).length;
  for (const [state, label] of [["all", "All " + grouped(layers.length)], ["integer", "Integer " + grouped(n)],
    ["float", "Float " + grouped(layers.length - n)]])
    $("states").append(el("label", null, el("input", { type: "radio", name: "state", value: state, checked: state === "all",
      on: { change: () => { view.state = state; view.shown = PAGE; render(); } } }), el("span", null, label)));
  for (const c of shownColumns)
    for (const down of c.num && c.key !== "index" ? [true, false] : [false])
      $("sort-by").append(el("option", { value: c.key + (down ? " down" : "") },
        (c.key === "index" ? "depth" : c.label) + (c.num && c.key !== "index" ? (down ? ", largest first" : ", smallest first") : "")));
  $("sort-by").addEventListener("change", (e) => sortBy(e.target.value.split(" ")[0], e.target.value.endsWith(" down")));
}

function startTable() {
  if (!layers.length) return;
  $("layers").hidden = false;
  shownColumns = columns.filter((c) => ["index", "name", "state"].includes(c.key) ||
    layers.some((l) => { const v = c.by(l); return v !== undefined && v !== null && v !== ""; }));
  view.most = { alone: Math.max(...layers.map((l) => errorOf(l.alone) || 0)), all: Math.max(...layers.map((l) => errorOf(l.all) || 0)) };
  $("layers-lead").textContent = "Errors are noise over signal. Alone: only this layer is quantized, at the network's worst output. " +
    "All quantized: at the output of the layer. Open a layer for its numbers and histograms.";
  $("table").tHead.append(el("tr", null, shownColumns.map((c) => el("th", { scope: "col", class: ((c.num ? "num " : "") + (c.class || "")) || null, "data-key": c.key },
    el("button", { type: "button", title: c.title || null, on: { click: () => sortBy(c.key) } }, c.label)))));
  startTools();
  $("table").tBodies[0].addEventListener("click", (e) => {
    const row = e.target.closest("tr.row");
    if (row && (e.target.closest("button") || !String(getSelection()))) toggle(Number(row.dataset.index));
  });
  let before = PAGE; // paper shows all
  addEventListener("beforeprint", () => { before = view.shown; if (view.rows.length > view.shown) showMore(view.rows.length); });
  addEventListener("afterprint", () => { view.shown = before; render(); });
  render();
}
