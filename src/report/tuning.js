// SPDX-License-Identifier: Apache-2.0
// A search: what was tried as points of score over time and over size, the Pareto front, and a table.

const trialName = (t) => (t.float ? "float network" : t.settings.trim().replace(/\n/g, ", ") || "the default");
const trialClass = (t) => (t.best ? "c2" : t.front ? "c0" : t.float ? "c1" : "c5");

// Ends of an axis that leave room around the values.
function spread(values, room) {
  const low = Math.min(...values), high = Math.max(...values), more = (high - low) * room || Math.abs(high) * 0.02 || 1;
  return [Math.max(0, low - more), high + more];
}

// Ticks with as many digits as tell them apart.
function tickTexts(low, high, n) {
  const list = ticks(low, high, n), step = list.length > 1 ? list[1] - list[0] : 1;
  return list.map((t) => [t, t.toFixed(Math.max(0, Math.min(6, Math.ceil(-Math.log10(step) - 1e-9))))]);
}

// The best score that each cost can have among the points drawn: flat until the next better one.
function stairs(points, of, x, y, end) {
  let path = "", best = -Infinity;
  for (const t of [...points].sort((a, b) => of(a) - of(b) || b.score - a.score)) {
    if (t.score <= best) continue;
    path += (path ? "H" + x(of(t)).toFixed(1) + "V" : "M" + x(of(t)).toFixed(1) + " ") + y(t.score).toFixed(1);
    best = t.score;
  }
  return path + "H" + end.toFixed(1);
}

// float: drawn where it does not squeeze all others into a corner; its score is a line in any case.
function trialChart(title, unit, all, of) {
  const W = 560, H = 340, left = 66, right = 16, top = 14, bottom = 46, score = D.tuning.score;
  const trials = all.filter((t) => !t.float), whole = all.find((t) => t.float);
  const wide = whole && of(whole) <= 1.6 * Math.max(...trials.map(of)), drawn = wide ? all : trials;
  const [x0, x1] = spread(drawn.map(of), 0.08), [y0, y1] = spread(all.map((t) => t.score), 0.08);
  const x = (v) => left + (v - x0) / (x1 - x0) * (W - left - right), y = (v) => top + (y1 - v) / (y1 - y0) * (H - top - bottom);
  const axis = svg("g", { class: "axis" });
  for (const [t, text] of tickTexts(y0, y1, 5))
    axis.append(svg("line", { x1: left, x2: W - right, y1: y(t), y2: y(t) }), svg("text", { x: left - 7, y: y(t) + 4, "text-anchor": "end" }, text));
  for (const [t, text] of tickTexts(x0, x1, 6))
    axis.append(svg("line", { class: "base", x1: x(t), x2: x(t), y1: H - bottom, y2: H - bottom + 4 }), svg("text", { x: x(t), y: H - bottom + 18, "text-anchor": "middle" }, text));
  axis.append(svg("line", { class: "base", x1: left, x2: W - right, y1: H - bottom, y2: H - bottom }),
    svg("text", { class: "title", x: (left + W - right) / 2, y: H - 6, "text-anchor": "middle" }, unit),
    svg("text", { class: "title", transform: "translate(13 " + (top + H - bottom) / 2 + ") rotate(-90)", "text-anchor": "middle" }, score));
  const level = whole ? svg("line", { class: "cursor", x1: left, x2: W - right, y1: y(whole.score), y2: y(whole.score) },
    svg("title", null, "float network: " + whole.score.toFixed(4))) : null;
  const order = (t) => (t.best ? 3 : t.front ? 2 : t.float ? 1 : 0);
  const dots = [...drawn].sort((a, b) => order(a) - order(b)).map((t) => svg("circle", { class: "dot " + trialClass(t), cx: x(of(t)).toFixed(1),
    cy: y(t.score).toFixed(1), r: t.best ? 6 : t.front || t.float ? 5 : 3.6 }, svg("title", null, "trial " + t.id + ": " + trialName(t) + "; " + score + " " +
    t.score.toFixed(4) + ", " + short(t.ms) + " ms, " + bytes(t.bytes))));
  return el("figure", { class: "curve" }, el("figcaption", null, title), svg("svg", { viewBox: "0 0 " + W + " " + H, role: "img",
    "aria-label": title + " of " + plural(trials.length, "trial") }, axis, level,
    svg("path", { class: "c0", d: stairs(trials, of, x, y, W - right) }), dots));
}

function trialLegend() {
  const key = (color, r, text) => el("span", null, svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, svg("circle", { class: "dot " + color, cx: 7, cy: 7, r })), text);
  return el("div", { class: "legend" }, key("c2", 6, "chosen"), key("c0", 5, "Pareto front: nothing is better in score, time and size at once"), key("c5", 3.6, "others"),
    key("c1", 5, "float network (dashed line: its score)"));
}

function trialTable(list) {
  return sortTable([{ label: "Trial", num: true, by: (t) => t.id, cell: (t) => grouped(t.id) + (t.best ? " (chosen)" : t.front ? " (front)" : "") },
    { label: D.tuning.score, num: true, by: (t) => t.score, cell: (t) => t.score.toFixed(4) },
    { label: "ms", num: true, by: (t) => t.ms, cell: (t) => short(t.ms) }, { label: "MB", num: true, by: (t) => t.bytes, cell: (t) => short(t.bytes / 1e6) },
    { label: "Pictures", num: true, by: (t) => t.images, cell: (t) => grouped(t.images), class: "wide" },
    { label: "Settings", by: trialName, cell: trialName, class: "name" }], list, 1, true, 30);
}

function tuningCards(last) {
  const best = last.find((t) => t.best), first = last.find((t) => !t.float && !t.settings), whole = last.find((t) => t.float);
  if (!best) return [];
  const against = (of, digits) => [first && "the default " + of(first).toFixed(digits), whole && "float " + of(whole).toFixed(digits)].filter(Boolean).join(", ");
  return [card("Score", best.score.toFixed(4), D.tuning.score, null, against((t) => t.score, 4)),
    card("Time of a picture", short(best.ms), "ms", null, against((t) => t.ms, 2)),
    card("Size", (best.bytes / 1e6).toFixed(2), "MB", null, against((t) => t.bytes / 1e6, 2))];
}

function startTuning() {
  const list = D.tuning ? D.tuning.trials.filter((t) => isNumber(t.score) && isNumber(t.ms)) : [];
  if (!list.some((t) => !t.float)) return;
  const round = Math.max(...list.filter((t) => !t.float).map((t) => t.round)), last = list.filter((t) => t.round === round);
  const before = list.filter((t) => t.round < round && !t.float);
  $("tuning").hidden = false;
  $("tuning-lead").textContent = plural(last.filter((t) => !t.float).length, "setting") + " that came to the last round, scored on " + plural(last[0].images, "picture") +
    "; " + plural(before.length, "trial") + " before on fewer. Times are medians, measured in turns with the float network. The line is the best score there is up to a time, or a size.";
  fill($("cards"), null, tuningCards(last));
  fill($("tuning-body"), null, [trialLegend(), el("div", { class: "curves epochs" }, trialChart("Score over time", "ms of a picture", last, (t) => t.ms),
    trialChart("Score over size", "MB of the file", last, (t) => t.bytes / 1e6)), el("div", { class: "part" }, el("h3", null, "The last round"), trialTable(last)),
    before.length ? el("div", { class: "part" }, el("h3", null, "Trials on fewer pictures"), trialTable(before)) : null]);
}
