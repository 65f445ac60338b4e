// SPDX-License-Identifier: Apache-2.0
// Accuracy: figures with their noise, precision by recall, classes. And tables that sort.

/*
 * A table that its headings sort. columns: { label, num, by, cell, class }; the first rows are shown until
 * more are asked for.
 */
function sortTable(columns, rows, sort, down, page) {
  const state = { sort, down, shown: page };
  const body = el("tbody"), more = el("p", { class: "more no-print" });
  const heads = columns.map((c, i) => el("th", { scope: "col", class: ((c.num ? "num " : "") + (c.class || "")) || null },
    el("button", { type: "button", title: c.title || null, on: { click: () => {
      state.down = state.sort === i ? !state.down : Boolean(c.num);
      state.sort = i;
      show();
    } } }, c.label)));
  const show = () => {
    const by = columns[state.sort].by;
    const order = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b) * (state.down ? -1 : 1);
    const list = rows.slice().sort((a, b) => order(by(a), by(b)));
    body.replaceChildren(...list.slice(0, state.shown).map((r) => el("tr", null, columns.map((c, i) =>
      el(i ? "td" : "th", { scope: i ? null : "row", class: ((c.num ? "num " : "") + (c.class || "")) || null }, c.cell(r))))));
    heads.forEach((th, i) => { if (i === state.sort) th.setAttribute("aria-sort", state.down ? "descending" : "ascending"); else th.removeAttribute("aria-sort"); });
    more.replaceChildren(...(state.shown < rows.length ? [el("button", { type: "button", class: "quiet",
      on: { click: () => { state.shown = rows.length; show(); } } }, "Show all " + grouped(rows.length))] : []));
  };
  show();
  addEventListener("beforeprint", () => { state.before = state.shown; state.shown = rows.length; show(); });
  addEventListener("afterprint", () => { state.shown = state.before; show(); });
  return el("div", { class: "sorted" }, el("table", { class: "data" }, el("thead", null, el("tr", null, heads)), body), more);
}

// --- figures ---

const noiseText = (n) => "±: half of the 95 % interval, by bootstrap: " + plural(n.images, "picture") +
  " drawn with replacement, " + grouped(n.resamples) + " times, the same draws for both networks.";

function changeText() {
  const n = D.accuracy.noise, [name, before, after] = D.accuracy.rows[0];
  if (!n) return D.accuracy.set ? "Measured on " + D.accuracy.set + "." : "";
  const change = after - before, within = Math.abs(change) <= n.change;
  return name + " went from " + before.toFixed(4) + " to " + after.toFixed(4) + ": " + signed(change, 4) + " ± " + n.change.toFixed(4) + ". " +
    (within ? "That is within the noise: " + plural(n.images, "picture") + " cannot tell which network is better." :
      change < 0 ? "That is more than the noise: the loss is real." : "That is more than the noise: the gain is real.");
}

function figuresTable() {
  const n = D.accuracy.noise, plus = (v) => (isNumber(v) ? el("span", { class: "noise" }, " ± " + v.toFixed(4)) : null);
  const head = ["", "float", "INT8", "change"].map((t) => el("th", { scope: "col" }, t));
  const rows = D.accuracy.rows.map(([name, a, b], i) => el("tr", null, el("th", { scope: "row" }, name),
    el("td", null, a.toFixed(4), n && !i ? plus(n.before) : null), el("td", null, b.toFixed(4), n && !i ? plus(n.after) : null),
    el("td", null, signed(b - a, 4), n && !i ? plus(n.change) : null)));
  return el("div", { class: "figures-part" }, el("table", { class: "plain" }, el("thead", null, el("tr", null, head)), el("tbody", null, rows)),
    n ? el("p", { class: "hint" }, noiseText(n)) : null);
}

// --- precision by recall ---

function recallChart(title, curves) {
  const W = 420, H = 300, left = 46, right = 12, top = 12, bottom = 44;
  const x = (r) => left + r * (W - left - right), y = (p) => top + (1 - p) * (H - top - bottom);
  const axis = svg("g", { class: "axis" });
  for (const t of [0, 0.2, 0.4, 0.6, 0.8, 1])
    axis.append(svg("line", { x1: left, x2: W - right, y1: y(t), y2: y(t) }), svg("text", { x: left - 7, y: y(t) + 4, "text-anchor": "end" }, t.toFixed(1)),
      svg("text", { x: x(t), y: H - bottom + 17, "text-anchor": "middle" }, t.toFixed(1)));
  axis.append(svg("line", { class: "base", x1: left, x2: W - right, y1: y(0), y2: y(0) }),
    svg("text", { class: "title", x: (left + W - right) / 2, y: H - 6, "text-anchor": "middle" }, "recall"),
    svg("text", { class: "title", transform: "translate(11 " + (top + H - bottom) / 2 + ") rotate(-90)", "text-anchor": "middle" }, "precision"));
  const path = (c) => c.map((p, i) => (i ? "L" : "M") + x(i / (c.length - 1)).toFixed(1) + " " + y(p).toFixed(1)).join("");
  const mean = (c) => (c.reduce((a, b) => a + b, 0) / c.length).toFixed(3);
  return el("figure", { class: "curve" }, el("figcaption", null, title), svg("svg", { viewBox: "0 0 " + W + " " + H, role: "img",
    "aria-label": title + ": mean precision " + mean(curves[0]) + " in float, " + mean(curves[1]) + " in INT8" },
    axis, svg("path", { class: "s-alone", d: path(curves[0]) }), svg("path", { class: "s-all dashed", d: path(curves[1]) })));
}

function curveLegend() {
  const line = (kind, label) => el("span", null, svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, svg("path", { class: kind, d: "M0 5H26" })), label);
  return el("div", { class: "legend" }, line("s-alone", "float"), line("s-all dashed", "INT8"));
}

// --- classes ---

function changeCell(v) {
  return el("span", { class: v < -0.02 ? "bad" : v > 0.02 ? "good" : "" }, signed(v, 3));
}

function classTable() {
  const [NAME, BOXES, A, B, A50, B50] = [0, 1, 2, 3, 4, 5], number = (i) => ({ num: true, by: (r) => r[i], cell: (r) => r[i].toFixed(3) });
  const columns = [
    { label: "Class", by: (r) => r[NAME], cell: (r) => r[NAME], class: "name" },
    { label: "Boxes", title: "labelled ones; a class with few says little", num: true, by: (r) => r[BOXES], cell: (r) => grouped(r[BOXES]) },
    { label: "AP float", ...number(A) }, { label: "AP INT8", ...number(B) },
    { label: "Change", title: "sorted by its size", num: true, by: (r) => Math.abs(r[B] - r[A]), cell: (r) => changeCell(r[B] - r[A]) },
    { label: "AP50 float", ...number(A50), class: "wide" }, { label: "AP50 INT8", ...number(B50), class: "wide" }];
  return sortTable(columns, D.accuracy.classes, 4, true, 12);
}

function startAccuracy() {
  const a = D.accuracy;
  if (!a || a.rows.length < 2) return;
  $("accuracy").hidden = false;
  $("accuracy-lead").textContent = changeText();
  const curves = [a.curve50 ? recallChart("At IoU 0.50", a.curve50) : null, a.curve ? recallChart("Mean over IoU 0.50 to 0.95", a.curve) : null].filter(Boolean);
  fill($("accuracy-body"), null, [figuresTable(),
    curves.length ? el("div", { class: "part" }, el("h3", null, "Precision by recall"), el("p", { class: "hint" }, "Mean of all classes; the area below a line is AP."),
      curveLegend(), el("div", { class: "curves" }, curves)) : null,
    a.classes && a.classes.length > 1 ? el("div", { class: "part" }, el("h3", null, "Classes"),
      el("p", { class: "hint" }, "Largest change first. Of a class with few boxes the change is mostly chance."), classTable()) : null]);
}
