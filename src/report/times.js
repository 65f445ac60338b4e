// SPDX-License-Identifier: Apache-2.0
// Where the time goes: operators of both networks side by side, and how much the times varied.

const isBusy = () => isNumber(D.load) && D.cpus > 0 && D.load > 0.5 * D.cpus;
const spreadText = (i) => (D.p10 && D.p90 ? milliseconds(D.p10[i]).replace(" ms", "") + "–" + milliseconds(D.p90[i]) : "");

// "Conv+Swish" counts as Conv: what is fused into it takes hardly any time of its own.
const operatorOf = (s) => (s[7] ? "conversions and reorders" : s[2].split("+")[0] || "other");

function operators() {
  const rows = new Map();
  for (const s of D.steps) {
    const name = operatorOf(s);
    if (!rows.has(name)) rows.set(name, { name, ms: [0, 0], steps: [0, 0] });
    rows.get(name).ms[s[0]] += s[4];
    rows.get(name).steps[s[0]]++;
  }
  return [...rows.values()];
}

function timePair(l) {
  const gain = l.floatMs > 0 && l.int8Ms > 0 ? l.floatMs / l.int8Ms : 0;
  return [isNumber(l.floatMs) ? l.floatMs.toFixed(3) + " ms float" : null, isNumber(l.int8Ms) ? l.int8Ms.toFixed(3) + " ms INT8" : null]
    .filter(Boolean).join(", ") + (gain ? " (" + gain.toFixed(2) + "×)" : "");
}

// The spread of a layer's steps, if it is one step in each network.
function stepSpread(name, isInt8) {
  const list = D.steps.filter((s) => s[0] === isInt8 && s[1] === name && !s[7]);
  return list.length === 1 && list[0][6] > 0 ? list[0][5].toFixed(3) + "–" + list[0][6].toFixed(3) + " ms" : "";
}

function operatorTable(rows) {
  const most = Math.max(...rows.flatMap((r) => r.ms)), gain = (r) => (r.ms[0] > 0 && r.ms[1] > 0 ? r.ms[0] / r.ms[1] : 0);
  const bar = (i, kind) => ({ num: true, by: (r) => r.ms[i], class: "with-bar", cell: (r) => el("span", { class: "barred" },
    meter(kind, r.ms[i], most), r.steps[i] ? el("span", null, r.ms[i].toFixed(3)) : el("span", { class: "none" }, "–")) });
  return sortTable([
    { label: "Operator", by: (r) => r.name, cell: (r) => r.name, class: "name" },
    { label: "Float, ms", ...bar(0, "float") }, { label: "INT8, ms", ...bar(1, "int") },
    { label: "Gain", num: true, by: gain, cell: (r) => (gain(r) > 99 ? "> 99×" : gain(r) ? gain(r).toFixed(2) + "×" : "") },
    { label: "Steps", title: "float / INT8", num: true, by: (r) => r.steps[1], cell: (r) => r.steps[0] + " / " + r.steps[1], class: "wide" },
  ], rows, 1, true, 14);
}

function startTimes() {
  if (!D.steps.length) return;
  $("time").hidden = false;
  const runs = D.runs ? "Median of " + plural(D.runs, "run") + " of each network" : "Median times";
  $("time-lead").textContent = runs + ", measured in turns" + (D.threads ? " on " + plural(D.threads, "thread") : "") + ". " +
    (D.p10 && D.p90 ? "10th to 90th percentile: " + spreadText(0) + " in float, " + spreadText(1) + " in INT8." : "");
  fill($("time-body"), null, [isBusy() ? el("p", { class: "note busy" }, "The machine was busy: load average " + D.load.toFixed(1) + " on " + plural(D.cpus, "CPU") +
    " before measuring. Both networks were slowed down, but take the times with care, and measure again when it is idle: octet bench.") : null,
  operatorTable(operators())]);
}
