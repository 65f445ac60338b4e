// SPDX-License-Identifier: Apache-2.0
// Training: curves of the loss and its parts, of accuracy and of the rate, and the epochs as a table.

const EPOCH = 0, LOSS = 1, RATE = 2, ACCURACY = 3, OTHER = 4, SECONDS = 5, PARTS = 6; // columns of a row
const measured = (v) => isNumber(v) && v >= 0;
const accuracyName = () => (D.training.classifier ? "top 1" : "AP");

// A line through the epochs that have the value.
function curvePath(rows, of, x, y) {
  return rows.filter((r) => measured(of(r))).map((r, i) => (i ? "L" : "M") + x(r[EPOCH]).toFixed(1) + " " + y(of(r)).toFixed(1)).join("");
}

// Dots on it while they are few enough to be told apart; each tells its value.
function curveDots(rows, curve, x, y) {
  const list = rows.filter((r) => measured(curve.of(r)));
  return list.length > 30 ? [] : list.map((r) => svg("circle", { class: "dot c" + curve.color, cx: x(r[EPOCH]).toFixed(1), cy: y(curve.of(r)).toFixed(1), r: 2.6 },
    svg("title", null, "epoch " + r[EPOCH] + ": " + curve.label + " " + short(curve.of(r), 4))));
}

function curveTicks(high) {
  const list = ticks(0, high, 5), digits = Math.max(0, -Math.floor(Math.log10(list[1] || 1) + 1e-9));
  return list.map((t) => [t, digits > 6 ? short(t, 2) : t.toFixed(digits)]);
}

// curves: { label, color, of }, in the order of the legend.
function epochChart(title, rows, curves, most) {
  const W = 480, H = 280, left = 58, right = 14, top = 12, bottom = 44;
  const first = rows[0][EPOCH], last = Math.max(rows[rows.length - 1][EPOCH], first + 1);
  const values = curves.flatMap((c) => rows.map(c.of).filter(measured));
  const high = most || Math.max(...values) * 1.04 || 1;
  const x = (e) => left + (e - first) / (last - first) * (W - left - right);
  const y = (v) => top + (1 - v / high) * (H - top - bottom);
  const axis = svg("g", { class: "axis" });
  for (const [t, text] of curveTicks(high))
    axis.append(svg("line", { x1: left, x2: W - right, y1: y(t), y2: y(t) }), svg("text", { x: left - 7, y: y(t) + 4, "text-anchor": "end" }, text));
  for (const t of ticks(first, last, 8).filter((t) => t % 1 === 0))
    axis.append(svg("text", { x: x(t), y: H - bottom + 17, "text-anchor": "middle" }, grouped(t)));
  axis.append(svg("line", { class: "base", x1: left, x2: W - right, y1: y(0), y2: y(0) }),
    svg("text", { class: "title", x: (left + W - right) / 2, y: H - 6, "text-anchor": "middle" }, "epoch"));
  const best = D.training.best;
  const kept = best >= first && best <= last ? svg("line", { class: "cursor", x1: x(best), x2: x(best), y1: top, y2: H - bottom }, svg("title", null, "epoch " + best + ", the best")) : null;
  const label = curves.map((c) => { const l = rows.filter((r) => measured(c.of(r))); return c.label + " " + short(c.of(l[l.length - 1]), 4); }).join(", ");
  const legend = curves.length < 2 ? null : el("div", { class: "legend" }, curves.map((c) => el("span", null,
    svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, svg("path", { class: "c" + c.color, d: "M0 5H26" })), c.label)));
  return el("figure", { class: "curve" }, el("figcaption", null, title), legend, svg("svg", { viewBox: "0 0 " + W + " " + H, role: "img",
    "aria-label": title + ", at the end: " + label }, axis, kept, curves.map((c) => svg("path", { class: "c" + c.color, d: curvePath(rows, c.of, x, y) })),
    curves.map((c) => curveDots(rows, c, x, y))));
}

function trainingCharts(t) {
  const rows = t.epochs, has = (i) => rows.some((r) => measured(r[i]));
  const loss = [{ label: "loss", color: 0, of: (r) => r[LOSS] },
    ...(t.parts.length > 1 ? t.parts.map((name, i) => ({ label: name, color: i + 1, of: (r) => r[PARTS + i] })) : [])];
  const accuracy = [{ label: accuracyName(), color: 0, of: (r) => r[ACCURACY] },
    ...(has(OTHER) ? [{ label: "AP50", color: 1, of: (r) => r[OTHER] }] : [])];
  return el("div", { class: "curves epochs" }, epochChart("Loss", rows, loss),
    has(ACCURACY) ? epochChart("Accuracy", rows, accuracy, 1) : null, epochChart("Rate", rows, [{ label: "rate", color: 0, of: (r) => r[RATE] }]));
}

function epochTable(t) {
  const number = (i, digits) => ({ num: true, by: (r) => r[i], cell: (r) => (measured(r[i]) ? r[i].toFixed(digits) : "") });
  return sortTable([{ label: "Epoch", by: (r) => r[EPOCH], num: true, cell: (r) => grouped(r[EPOCH]) + (r[EPOCH] === t.best ? " (best)" : "") },
    { label: "Loss", ...number(LOSS, 4) }, ...(t.parts.length > 1 ? t.parts.map((name, i) => ({ label: name, ...number(PARTS + i, 4), class: "wide" })) : []),
    { label: accuracyName(), ...number(ACCURACY, 4) }, ...(t.epochs.some((r) => measured(r[OTHER])) ? [{ label: "AP50", ...number(OTHER, 4) }] : []),
    { label: "Rate", num: true, by: (r) => r[RATE], cell: (r) => short(r[RATE]) },
    { label: "Seconds", ...number(SECONDS, 1), class: "wide" }], t.epochs, 0, true, 10);
}

// What each step on the way gave, measured on its file.
function networkTable(t) {
  const number = (key, digits) => ({ num: true, by: (r) => r[key], cell: (r) => (isNumber(r[key]) ? r[key].toFixed(digits) : "") });
  return sortTable([{ label: "Network", by: (r) => t.networks.indexOf(r), cell: (r) => r.name }, { label: accuracyName(), ...number("accuracy", 4) },
    { label: t.classifier ? "top 5" : "AP50", ...number("other", 4) },
    { label: "MB", num: true, by: (r) => r.bytes, cell: (r) => short(r.bytes / 1e6) }, { label: "ms", num: true, by: (r) => r.ms, cell: (r) => short(r.ms) },
    { label: "File", by: (r) => r.file, cell: (r) => r.file, class: "wide" }], t.networks, 0, false, 10);
}

function trainingCards(t) {
  const first = t.epochs[0], last = t.epochs[t.epochs.length - 1], best = t.epochs.find((r) => r[EPOCH] === t.best);
  const seconds = t.epochs.reduce((sum, r) => sum + r[SECONDS], 0);
  const of = t.planned ? " of " + grouped(t.planned) : "";
  return [best && measured(best[ACCURACY]) ? card("Accuracy", best[ACCURACY].toFixed(4), accuracyName(), null,
    "after epoch " + grouped(t.best) + ", the best, whose network is kept") : null,
  card("Loss", last[LOSS].toFixed(4), null, null, "mean of epoch " + grouped(last[EPOCH]) + of + "; " + first[LOSS].toFixed(4) + " in epoch " + grouped(first[EPOCH])),
  card("Time of an epoch", short(seconds / t.epochs.length), "s", null, plural(t.epochs.length, "epoch") + " in " + (seconds >= 90 ? short(seconds / 60) + " minutes" : short(seconds) + " s") +
    ", without measuring accuracy")];
}

function startTraining() {
  const t = D.training;
  if (!t || !t.epochs.length) return;
  $("training").hidden = false;
  $("training-lead").textContent = "Means of each epoch." + (t.best ? " The dashed line is the epoch that was kept: the best " + accuracyName() + "." : "") +
    (t.epochs[0][EPOCH] > 1 ? " Training was resumed; the epochs before are not shown." : "");
  fill($("cards"), null, trainingCards(t));
  const networks = t.networks.length ? el("div", { class: "part" }, el("h3", null, "Step by step"), networkTable(t)) : null;
  fill($("training-body"), null, [networks, trainingCharts(t), el("div", { class: "part" }, el("h3", null, "Epochs"), epochTable(t))]);
}
