// SPDX-License-Identifier: Apache-2.0
// Pruning: what is left of the network and of each layer, drawn and as a table.

const lost = (v) => (v[0] > 0 ? 1 - v[1] / v[0] : 0);
const percentOf = (share) => (100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0) + " %";

function counted(v) {
  for (const [unit, size] of [[" G", 1e9], [" M", 1e6], [" k", 1e3]]) if (v >= size) return short(v / size) + unit;
  return grouped(v);
}

// A column for each layer, in the order of the network: as high as what it had, filled to what is left.
function prunedChart(title, layers, of) {
  const W = 980, H = 240, left = 62, right = 8, top = 12, bottom = 30;
  const high = Math.max(...layers.map((l) => of(l)[0])) * 1.04 || 1, step = (W - left - right) / layers.length;
  const y = (v) => top + (1 - v / high) * (H - top - bottom), width = Math.max(1, step * (step > 6 ? 0.76 : 1));
  const axis = svg("g", { class: "axis" });
  for (const t of ticks(0, high, 4))
    axis.append(svg("line", { x1: left, x2: W - right, y1: y(t), y2: y(t) }), svg("text", { x: left - 7, y: y(t) + 4, "text-anchor": "end" }, counted(t)));
  axis.append(svg("line", { class: "base", x1: left, x2: W - right, y1: y(0), y2: y(0) }),
    svg("text", { class: "title", x: (left + W - right) / 2, y: H - 6, "text-anchor": "middle" }, "layers, from the input to the outputs"));
  const column = (l, i) => {
    const [full, rest] = of(l), x = (left + i * step + (step - width) / 2).toFixed(1), w = width.toFixed(1);
    return svg("g", null, svg("title", null, l.name + ": " + counted(full) + " → " + counted(rest)),
      svg("rect", { class: "was", x, width: w, y: y(full).toFixed(1), height: (y(0) - y(full)).toFixed(1) }),
      svg("rect", { class: "rest", x, width: w, y: y(rest).toFixed(1), height: (y(0) - y(rest)).toFixed(1) }));
  };
  return el("figure", { class: "pruned" }, el("figcaption", null, title), svg("svg", { viewBox: "0 0 " + W + " " + H, role: "img",
    "aria-label": title + " of " + plural(layers.length, "layer") + ", before and after" }, axis, layers.map(column)));
}

function prunedLegend() {
  const key = (name, text) => el("span", null, svg("svg", { width: 14, height: 12, "aria-hidden": "true" }, svg("rect", { class: name, x: 1, y: 1, width: 12, height: 10 })), text);
  return el("div", { class: "legend pruned" }, key("rest", "left"), key("was", "removed"));
}

function prunedTable(layers) {
  const numbers = (of, name) => [{ label: name, num: true, by: (l) => of(l)[0], cell: (l) => counted(of(l)[0]) },
    { label: "left", num: true, by: (l) => lost(of(l)), class: "with-bar", title: "sorted by what went", cell: (l) => el("span", { class: "barred" },
      meter("int", of(l)[1], of(l)[0]), el("span", null, counted(of(l)[1]))) }];
  return sortTable([{ label: "#", num: true, by: (l) => l.at, cell: (l) => grouped(l.at + 1) },
    { label: "Layer", by: (l) => l.name, cell: (l) => l.name, class: "name" },
    { label: "Operator", by: (l) => l.op, cell: (l) => l.op, class: "wide" },
    ...numbers((l) => l.channels, "Channels"), ...numbers((l) => l.macs, "MACs"),
    { label: "Why all stay", by: (l) => l.why || "", cell: (l) => l.why || "", class: "wide" }], layers, 0, false, 20);
}

function startPruning() {
  const p = D.pruned;
  if (!p || !p.layers.length) return;
  $("pruning").hidden = false;
  p.layers.forEach((l, i) => { l.at = i; });
  const less = p.layers.filter((l) => l.channels[1] < l.channels[0]).length, say = (name, v) => name + " " + counted(v[0]) + " → " + counted(v[1]) + " (" + percentOf(lost(v)) + " fewer)";
  $("pruning-lead").textContent = say("Multiply-adds", p.macs) + ", " + say("weights", p.params) + ", " + say("channels", p.channels) + ". " +
    less + " of " + plural(p.layers.length, "layer") + " make fewer channels than before.";
  fill($("pruning-body"), null, [prunedLegend(), prunedChart("Channels", p.layers, (l) => l.channels), prunedChart("Multiply-adds", p.layers, (l) => l.macs),
    el("div", { class: "part" }, el("h3", null, "Layers, full and left"), prunedTable(p.layers))]);
}
