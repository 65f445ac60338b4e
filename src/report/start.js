// SPDX-License-Identifier: Apache-2.0
// The start: reads the data, joins what belongs together, draws the sections.

// Rows with their points and times. Without an analysis the times alone make the rows.
function readLayers() {
  const times = new Map(D.times.map((t) => [t[0], t]));
  const made = new Map();
  for (const p of D.points) {
    if (!made.has(p.layer)) made.set(p.layer, []);
    made.get(p.layer).push(p);
  }
  const known = (v) => (v >= 0 ? v : undefined);
  const rows = D.layers.length ? D.layers : D.times.map((t) => ({ name: t[0], op: "", unknown: true }));
  return rows.map((l, index) => {
    const t = times.get(l.name) || [];
    const makes = (l.makes || []).map((i) => D.points[i]);
    return { ...l, index, isInteger: !l.reason && !l.unknown, floatMs: known(t[1]), int8Ms: known(t[2]),
      makes: makes.length ? makes : made.get(l.name) || [], reads: (l.reads || []).map((i) => D.points[i]),
      text: [l.name, l.op, l.reason || "integer"].join(" ").toLowerCase() };
  });
}

function startSections() {
  for (const section of document.querySelectorAll("main > section:not([hidden])"))
    $("sections").append(el("a", { href: "#" + section.id }, section.querySelector("h2").textContent));
}

document.addEventListener("DOMContentLoaded", () => {
  D = JSON.parse($("data").textContent);
  layers = readLayers();
  startTheme();
  startSummary();
  startTraining();
  startPruning();
  startTuning();
  startAccuracy();
  startAdvice();
  startGraph(); // before the table, whose details point into it
  startChart();
  startTable();
  startTimes();
  startPictures();
  startReproduce();
  startSections();
});
