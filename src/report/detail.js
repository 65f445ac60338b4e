// SPDX-License-Identifier: Apache-2.0
// What opens below a layer: figures, and histograms with the range that codes can hold.

const figures = (list) => el("dl", { class: "figures" },
  list.filter((f) => f && f[1] !== "" && f[1] !== null && f[1] !== undefined)
    .map(([name, value]) => [el("dt", null, name), el("dd", null, value)]));

// Round numbers from low to high, about n of them.
function ticks(low, high, n) {
  const raw = (high - low) / n, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw);
  const list = [];
  for (let i = Math.ceil(low / step); i <= Math.floor(high / step + 1e-9) && list.length < 50; i++) list.push(i * step);
  return list;
}

function histogram(p, wide) {
  const W = Math.max(260, Math.min(wide, innerWidth - 60)), H = 190, left = 68, right = 12, top = 22, bottom = 40;
  const total = p.bins.reduce((a, b) => a + b, 0);
  let low = Math.min(p.binLow, p.low), high = Math.max(p.binHigh, p.high);
  if (!(high > low) || !total) return null;
  const least = Math.floor(Math.log10(Math.min(...p.bins.filter((b) => b > 0)) / total));
  const bottomPower = Math.max(-8, Math.min(-2, least));
  const x = (v) => left + (v - low) / (high - low) * (W - left - right);
  const y = (s) => top + (s > 0 ? Math.min(1, Math.log10(s) / bottomPower) : 1) * (H - top - bottom);
  const axis = svg("g", { class: "axis" });
  for (let k = 0; k >= bottomPower; k -= Math.max(1, Math.ceil(-bottomPower / 4)))
    axis.append(svg("line", { x1: left, x2: W - right, y1: y(10 ** k), y2: y(10 ** k) }),
      svg("text", { x: left - 6, y: y(10 ** k) + 4, "text-anchor": "end" }, asPercent(k, bottomPower)));
  for (const v of ticks(low, high, W / 80))
    axis.append(svg("text", { x: x(v), y: H - bottom + 16, "text-anchor": "middle" }, short(v)));
  axis.append(svg("line", { class: "base", x1: left, x2: W - right, y1: H - bottom, y2: H - bottom }),
    svg("text", { class: "title", x: (left + W - right) / 2, y: H - 5, "text-anchor": "middle" }, "value"));
  const bins = svg("g");
  p.bins.forEach((n, i) => {
    if (!n) return;
    const from = p.binLow + i * p.binWidth, to = Math.min(p.binHigh, from + p.binWidth);
    const out = p.clipped > 0 && (from >= p.high + p.scale / 2 || to <= p.low - p.scale / 2); // half a step rounds to the last code
    bins.append(svg("rect", { class: out ? "bin out" : "bin", x: x(from), y: y(n / total), width: Math.max(0.6, x(to) - x(from) - 0.3),
      height: Math.max(0, H - bottom - y(n / total)) }));
  });
  const range = svg("g", null, svg("rect", { class: "range", x: x(p.low), y: top, width: Math.max(0, x(p.high) - x(p.low)), height: H - top - bottom }));
  const edges = svg("g");
  for (const [v, anchor] of [[p.low, x(p.low) < 90 ? "start" : "middle"], [p.high, x(p.high) > W - 60 ? "end" : "middle"]])
    edges.append(svg("line", { class: "edge", x1: x(v), x2: x(v), y1: top - 4, y2: H - bottom }),
      svg("text", { class: "edge-text", x: x(v), y: top - 9, "text-anchor": anchor }, short(v)));
  return el("div", { class: "hist" }, svg("svg", { viewBox: "0 0 " + W + " " + H, role: "img",
    "aria-label": "Histogram: share of numbers, logarithmic, over their value; codes hold " + short(p.low) + " to " + short(p.high) },
    range, axis, bins, edges));
}

function pointPart(title, p, wide) {
  return el("div", null, el("h4", null, title, " ", el("span", { class: "mono" }, p.value)),
    p.bins ? [el("p", { class: "hint" }, "Share of numbers (logarithmic) by value; shaded: what codes can hold" +
      (p.clipped > 0 ? "; red: cut off" : "") + "."), histogram(p, wide)] : null,
    figures([
      ["type", p.type + (p.scales > 1 ? ", " + p.scales + " scales, one for each channel; the widest is shown" : "")],
      ["seen", short(p.min) + " … " + short(p.max)],
      ["codes hold", short(p.low) + " … " + short(p.high)],
      ["scale, zero", short(p.scale, 4) + ", " + short(p.zero)],
      ["cut off", isNumber(p.clipped) ? (p.clipped > 0 ? short(p.clipped * 100) + " %" : "nothing") : ""],
      ["codes used", p.levels ? grouped(p.used) + " of " + grouped(p.levels) : ""],
      ["kurtosis", isNumber(p.kurtosis) ? short(p.kurtosis) + (p.kurtosis > 30 ? " (long tails)" : "") : ""],
      ["spread of channels", p.spread > 0 ? short(p.spread) + "× the median channel's range" : ""],
      ["rounding error", p.noise >= 0 ? percent(p.noise) + " %, " + decibel(p.noise) : ""],
    ]));
}

function errorFigures(title, e) {
  return e ? [[title, percent(e[0]) + " %, " + decibel(e[0])], ["· cosine", isNumber(e[1]) ? e[1].toFixed(6) : ""],
    ["· mean squared", short(e[2])], ["· KL divergence", isNumber(e[3]) ? short(e[3]) + " nats" : ""]] : [];
}

function makeDetail(l) {
  const spread = [["float", 0], ["INT8", 1]].map(([name, i]) => [name, stepSpread(l.name, i)]).filter((p) => p[1]).map((p) => p[0] + " " + p[1]).join(", ");
  const about = el("div", { class: "about-layer" }, el("h4", null, l.op + " ", el("span", { class: "mono" }, l.name)), figures([
    ["state", l.isInteger ? "works on integers" : "float" + (l.reason ? ": " + l.reason : "")],
    ["multiply-adds", l.macs ? count(l.macs) : ""], ["weights", l.params ? count(l.params) : ""],
    ["error of the weights", isNumber(l.weightNoise) ? percent(l.weightNoise) + " %, " + decibel(l.weightNoise) : ""],
    ...errorFigures("error alone", l.alone), ...errorFigures("error, all quantized", l.all),
    ["time", isNumber(l.floatMs) || isNumber(l.int8Ms) ? timePair(l) : ""], ["· 10th to 90th percentile", spread], ...kernelsOf(l.name),
  ]), nodeOf(l) ? el("p", { class: "buttons no-print" }, el("button", { type: "button",
    on: { click: () => selectLayer(l.index, "graph") } }, "Show in the graph")) : null);
  const n = l.makes.length + l.reads.length + 1, wide = n === 3 && innerWidth > 1100 ? 360 : 520;
  const points = [...l.makes.map((p) => pointPart("makes", p, wide)), ...l.reads.map((p) => pointPart("reads", p, wide))];
  return el("tr", { class: "detail" }, el("td", { colspan: shownColumns.length }, el("div", { class: "detail-grid n" + Math.min(5, n) }, about, points)));
}
