// SPDX-License-Identifier: Apache-2.0
// Error by depth: noise over signal of every layer on a logarithmic scale, drawn as wide as the page.

const series = [
  { key: "all", label: "everything quantized, at the layer's output" },
  { key: "alone", label: "only this layer quantized, at the network's worst output" },
];
const chart = { at: -1 };

const valueAt = (l, s) => { const v = errorOf(l[s.key]); return v > 0 ? Math.max(v, 1e-9) : undefined; };

// Decades that hold all values; of very small errors it only matters that they are small.
function decades(values) {
  const low = Math.floor(Math.log10(Math.min(...values))), high = Math.ceil(Math.log10(Math.max(...values)));
  return [Math.max(high - 6, Math.min(high - 2, low)), high];
}

// All ticks of one axis in one form: plain as long as the smallest is short enough.
const asPercent = (power, least) => (least >= -6 ? (100 * 10 ** power).toFixed(Math.max(0, -2 - power)) :
  "10" + [...String(power + 2)].map((d) => (d === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[d])).join("")) + " %";

function drawChart() {
  const used = series.filter((s) => layers.some((l) => valueAt(l, s) !== undefined));
  const values = used.flatMap((s) => layers.map((l) => valueAt(l, s)).filter((v) => v !== undefined));
  const W = Math.max(280, $("chart").clientWidth - 18), H = W < 560 ? 280 : 340;
  const left = 84, right = 14, top = 12, bottom = 46;
  const [low, high] = decades(values);
  const x = (i) => left + (layers.length > 1 ? i / (layers.length - 1) : 0.5) * (W - left - right);
  const y = (v) => top + (high - Math.max(low, Math.log10(v))) / (high - low) * (H - top - bottom);
  const axis = svg("g", { class: "axis" });
  for (let k = high; k >= low; k -= Math.ceil((high - low) / 7))
    axis.append(svg("line", { x1: left, x2: W - right, y1: y(10 ** k), y2: y(10 ** k) }),
      svg("text", { x: left - 8, y: y(10 ** k) + 4, "text-anchor": "end" }, asPercent(k, low)));
  for (const t of ticks(1, layers.length, W < 560 ? 5 : 10).filter((t) => t >= 1 && t % 1 === 0))
    axis.append(svg("line", { class: "base", x1: x(t - 1), x2: x(t - 1), y1: H - bottom, y2: H - bottom + 4 }),
      svg("text", { x: x(t - 1), y: H - bottom + 17, "text-anchor": "middle" }, grouped(t)));
  axis.append(svg("line", { class: "base", x1: left, x2: W - right, y1: H - bottom, y2: H - bottom }),
    svg("text", { class: "title", x: (left + W - right) / 2, y: H - 6, "text-anchor": "middle" }, "layer, in the order of computing"),
    svg("text", { class: "title", transform: "translate(13 " + (top + H - bottom) / 2 + ") rotate(-90)", "text-anchor": "middle" },
      "noise / signal (log scale)"));
  const picture = svg("svg", { viewBox: "0 0 " + W + " " + H, "aria-hidden": "true" }, axis,
    svg("line", { class: "cursor", id: "chart-cursor", y1: top, y2: H - bottom, visibility: "hidden" }));
  for (const s of used) drawSeries(picture, s, x, y);
  $("chart").replaceChildren(picture);
  Object.assign(chart, { x, W, left, right, picture });
  if (chart.at >= 0) moveTo(chart.at);
}

// A line through neighbours, dots on it as long as they are few enough to be told apart.
function drawSeries(picture, s, x, y) {
  let path = "", gap = true;
  layers.forEach((l, i) => {
    const v = valueAt(l, s);
    if (v !== undefined) path += (gap || !path ? "M" : "L") + x(i).toFixed(1) + " " + y(v).toFixed(1);
    gap = v === undefined && s.key === "all";
  });
  picture.append(svg("path", { class: "s-" + s.key, d: path, opacity: s.key === "all" ? 1 : 0.75 }));
  const r = Math.min(3.2, (x(1) - x(0)) / 2.5);
  if (r < 0.8) return;
  layers.forEach((l, i) => {
    const v = valueAt(l, s);
    if (v !== undefined) picture.append(svg("circle", { class: "dot s-" + s.key, cx: x(i).toFixed(1), cy: y(v).toFixed(1), r }));
  });
}

function moveTo(i) {
  chart.at = Math.max(0, Math.min(layers.length - 1, i));
  const l = layers[chart.at], cursor = $("chart-cursor");
  cursor.setAttribute("x1", chart.x(chart.at));
  cursor.setAttribute("x2", chart.x(chart.at));
  cursor.setAttribute("visibility", "visible");
  const parts = series.filter((s) => l[s.key]).map((s) => (s.key === "all" ? "all quantized " : "alone ") + percent(l[s.key][0]) + " %");
  $("chart-readout").textContent = l.index + 1 + ". " + l.name + " (" + l.op + "): " +
    (parts.length ? parts.join(", ") : l.isInteger ? "not measured" : "float");
}

const nearest = (e) => {
  const box = chart.picture.getBoundingClientRect();
  const at = ((e.clientX - box.left) * chart.W / box.width - chart.left) / (chart.W - chart.left - chart.right);
  return Math.round(at * (layers.length - 1));
};

function startChart() {
  const used = series.filter((s) => layers.some((l) => valueAt(l, s) !== undefined));
  if (!used.length) return;
  $("error").hidden = false;
  $("error-lead").textContent = "Where the quantized network leaves the float one" +
    (D.analyzedImages ? ", over " + plural(D.analyzedImages, "picture") : "") + "." + outputsText();
  fill($("chart-legend"), null, used.map((s) => el("span", null, svg("svg", { width: 26, height: 10, "aria-hidden": "true" },
    svg("path", { class: "s-" + s.key, d: "M0 5H26" }), svg("circle", { class: "dot s-" + s.key, cx: 13, cy: 5, r: 3.2 })), s.label)));
  drawChart();
  let width = $("chart").clientWidth;
  addEventListener("resize", () => { if ($("chart").clientWidth !== width) { width = $("chart").clientWidth; drawChart(); } });
  $("chart").addEventListener("pointermove", (e) => moveTo(nearest(e)));
  $("chart").addEventListener("click", (e) => { moveTo(nearest(e)); selectLayer(chart.at, "table"); });
  $("chart").addEventListener("keydown", (e) => {
    const to = { ArrowLeft: chart.at - 1, ArrowRight: chart.at + 1, Home: 0, End: layers.length - 1 }[e.key];
    if (to !== undefined) { moveTo(to); e.preventDefault(); }
    if (e.key === "Enter" && chart.at >= 0) selectLayer(chart.at, "table");
  });
}

function outputsText() {
  const list = D.outputs.filter((o) => o.error).slice(0, 4);
  return list.length ? " At the network's outputs: " + list.map((o) => o.name + " " + percent(o.error[0]) + " %").join(", ") +
    (D.outputs.length > 4 ? " …" : "") + "." : "";
}
