// SPDX-License-Identifier: Apache-2.0
// The graph's view: its box, pointers and keys, and what is told of a node.

function setBox(box) {
  const view = $("graph-view");
  const widest = Math.max(graph.all.width, graph.all.height * view.clientWidth / Math.max(1, view.clientHeight)) * 1.05, least = 120;
  const width = Math.max(least, Math.min(widest, box.width));
  const height = width * view.clientHeight / Math.max(1, view.clientWidth);
  const keep = (at, from, size, mine) => (size <= mine ? from + (size - mine) / 2 : Math.max(from - mine * 0.5, Math.min(from + size - mine * 0.5, at)));
  graph.box = { x: keep(box.x, graph.all.x, graph.all.width, width), y: keep(box.y, graph.all.y, graph.all.height, height), width, height };
  graph.svg.setAttribute("viewBox", [graph.box.x, graph.box.y, width, height].map((v) => v.toFixed(2)).join(" "));
  for (const key of ["x", "y", "width", "height"]) graph.frame.setAttribute(key, graph.box[key].toFixed(1));
  $("graph-overview").hidden = graph.all.width <= width * 1.02 && graph.all.height <= height * 1.02;
}

// Around a point of the view, given in shares of its width and height.
function zoom(by, atX = 0.5, atY = 0.5) {
  const b = graph.box, width = b.width / by;
  const view = $("graph-view"), height = width * view.clientHeight / Math.max(1, view.clientWidth);
  setBox({ x: b.x + (b.width - width) * atX, y: b.y + (b.height - height) * atY, width });
}

const move = (x, y) => setBox({ ...graph.box, x: graph.box.x + x * graph.box.width, y: graph.box.y + y * graph.box.height });

// At a size that can be read, from the beginning.
function showStart() {
  const width = Math.max(300, $("graph-view").clientWidth), first = graph.leaves.get(-1);
  const middle = first && first.place ? first.place.x + first.place.width / 2 : graph.all.x + graph.all.width / 2;
  setBox({ x: graph.all.width <= width ? graph.all.x : middle - width / 2, y: graph.all.y, width });
}

function showAll() {
  setBox({ x: graph.all.x, y: graph.all.y, width: Infinity });
}

function openAll(open) {
  const walk = (m) => { for (const c of m.children) if (c.module) { if (open) graph.open.add(c); else graph.open.delete(c); walk(c); } };
  walk(graph.root);
  redraw(null);
  showAll();
}

// --- what is told of a node ---

const inCodes = (q) => q && [q[0], q[1] > 1 ? ", " + grouped(q[1]) + " scales " + short(q[2]) + " … " + short(q[3]) : ", scale " + short(q[2], 4),
  q[4] === q[5] ? ", zero " + short(q[4]) : ", zeros " + short(q[4]) + " … " + short(q[5])].join("");

function valueList(title, list) {
  return list.length ? [el("h4", null, title), el("ul", { class: "values" }, list.map((v) => el("li", null, el("span", { class: "mono" }, v.value),
    el("span", null, v.type + " " + v.shape), v.codes ? el("span", { class: "codes" }, inCodes(v.codes)) : null)))] : null;
}

function kernelsOf(name) {
  const list = [];
  for (const [isInt8, label] of [[0, "float kernel"], [1, "INT8 kernel"]]) {
    const step = D.steps.find((s) => s[0] === isInt8 && s[1] === name && !s[7]);
    if (step) list.push([label, step[3] + (step[2] ? " (" + step[2] + ")" : "")]);
  }
  return list;
}

function showLeaf(c) {
  const n = c.node, l = c.layer;
  if (c.port) return [el("h3", null, c.port), valueList("", [c.value])];
  return [el("h3", null, n.op), el("p", { class: "mono path" }, n.name || "(no name)"), figures([
    ["computes on", n.integer ? "integers" : "floats" + (l && l.reason ? ": " + l.reason : "")],
    ["error, all quantized", l && l.all ? percent(l.all[0]) + " %, " + decibel(l.all[0]) : ""],
    ["error alone", l && l.alone ? percent(l.alone[0]) + " %, " + decibel(l.alone[0]) : ""],
    ["time", l && (isNumber(l.floatMs) || isNumber(l.int8Ms)) ? timePair(l) : ""],
    ...kernelsOf(n.name), ["multiply-adds", l && l.macs ? count(l.macs) : ""], ["weights", l && l.params ? count(l.params) : ""]]),
  n.attrs.length ? [el("h4", null, "Attributes"), figures(n.attrs)] : null,
  valueList("Reads", n.in), valueList("Constants", n.weights), valueList("Makes", n.out),
  l ? el("p", { class: "buttons" }, el("button", { type: "button", on: { click: () => selectLayer(l.index, "table") } }, "Open its layer")) : null];
}

function showModule(m) {
  const s = m.sum;
  return [el("h3", null, m.isPart ? m.name : "Module"), m.isPart ? null : el("p", { class: "mono path" }, pathOfModule(m)), figures([
    ["nodes", plural(s.nodes, "node") + ": " + s.integer + " integer, " + s.float + " float"],
    ["time", s.ms || s.floatMs ? (s.floatMs ? s.floatMs.toFixed(2) + " ms float, " : "") + s.ms.toFixed(2) + " ms INT8" : ""],
    ["largest error", s.worst ? percent(s.worst.all[0]) + " % at " + s.worst.name : ""]]),
  el("p", { class: "buttons" }, el("button", { type: "button", on: { click: () => { toggleModule(m); showItem(m); } } }, isOpen(m) ? "Fold it" : "Open it"))];
}

const pathOfModule = (m) => (m.parent ? (m.parent.isPart ? pathOfModule(m.parent.parent) : pathOfModule(m.parent)) + "/" + m.name : "");

function showItem(c) {
  fill($("graph-node"), null, []).replaceChildren();
  fill($("graph-node"), null, [c.module ? showModule(c) : showLeaf(c)]);
}

// --- pointers and keys ---

function startDragging(view) {
  const shares = (e) => { const r = view.getBoundingClientRect(); return [(e.clientX - r.left) / r.width, (e.clientY - r.top) / r.height]; };
  view.addEventListener("pointerdown", (e) => {
    graph.pointers.set(e.pointerId, shares(e));
    graph.moved = false;
  });
  addEventListener("pointermove", (e) => {
    const old = graph.pointers.get(e.pointerId);
    if (!old) return;
    const now = shares(e), others = [...graph.pointers].filter(([id]) => id !== e.pointerId).map(([, p]) => p);
    if (Math.hypot((now[0] - old[0]) * view.clientWidth, (now[1] - old[1]) * view.clientHeight) > 3) graph.moved = true;
    if (!graph.moved) return;
    view.classList.add("dragging");
    if (others.length) { // two fingers
      const size = (p) => Math.hypot(p[0] - others[0][0], p[1] - others[0][1]);
      if (size(old) > 0.01) zoom(size(now) / size(old), (now[0] + others[0][0]) / 2, (now[1] + others[0][1]) / 2);
    } else move(old[0] - now[0], old[1] - now[1]);
    graph.pointers.set(e.pointerId, now);
  });
  const end = (e) => { if (graph.pointers.delete(e.pointerId) && !graph.pointers.size) view.classList.remove("dragging"); };
  addEventListener("pointerup", end);
  addEventListener("pointercancel", end);
  view.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey) return; // the page scrolls
    e.preventDefault();
    zoom(Math.exp(-e.deltaY / 300), ...shares(e));
  }, { passive: false });
  const jump = (e) => {
    const r = $("graph-overview").getBoundingClientRect(), a = graph.all;
    setBox({ ...graph.box, x: a.x + (e.clientX - r.left) / r.width * a.width - graph.box.width / 2, y: a.y + (e.clientY - r.top) / r.height * a.height - graph.box.height / 2 });
  };
  $("graph-overview").addEventListener("pointerdown", (e) => { e.stopPropagation(); jump(e); });
  $("graph-overview").addEventListener("pointermove", (e) => { if (e.buttons) jump(e); });
}

function activate(c) {
  if (!c) return;
  selectItem(c);
  if (c.module) { toggleModule(c); selectItem(c); }
}

function startKeys(view) {
  const actions = { ArrowLeft: () => move(-0.15, 0), ArrowRight: () => move(0.15, 0), ArrowUp: () => move(0, -0.15),
    ArrowDown: () => move(0, 0.15), "+": () => zoom(1.3), "=": () => zoom(1.3), "-": () => zoom(1 / 1.3), 0: showAll, Home: showStart };
  view.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const item = e.target.item;
    if (item && (e.key === "Enter" || e.key === " ")) activate(item);
    else if (actions[e.key]) actions[e.key]();
    else return;
    e.preventDefault();
  });
  view.addEventListener("focusin", (e) => { // what Tab reaches is shown
    const p = e.target.item && e.target.item.place, b = graph.box;
    if (p && (p.x < b.x || p.y < b.y || p.x + p.width > b.x + b.width || p.y > b.y + b.height) && e.target.matches(":focus-visible")) centre(e.target.item);
    view.scrollTop = view.scrollLeft = 0;
  });
  $("graph-search").addEventListener("input", (e) => findNodes(e.target.value));
  $("graph-search").addEventListener("keydown", (e) => { if (e.key === "Enter") { nextHit(e.shiftKey ? -1 : 1); e.preventDefault(); } });
}

// --- start ---

function graphLegend() {
  const line = (kind) => svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, svg("path", { class: "line-" + kind, d: "M0 5H26" }));
  fill($("graph-legend"), null, [
    el("span", null, el("span", { class: "state int" }, "integer"), "computes on integers"),
    el("span", null, el("span", { class: "state float" }, "float"), "computes on floats"),
    el("span", null, el("span", { class: "state both" }, "both"), "a module of both"),
    el("span", null, line("codes"), "codes"), el("span", null, line("convert"), "conversion"), el("span", null, line("float"), "floats")]);
  const button = (text, label, f) => el("button", { type: "button", "aria-label": label, on: { click: f } }, text);
  fill($("graph-buttons"), null, [button("+", "Zoom in", () => zoom(1.4)), button("−", "Zoom out", () => zoom(1 / 1.4)),
    button("Start", "Show the beginning", showStart), button("All", "Show all of it", showAll),
    button("Open all", "Open all modules", () => openAll(true)), button("Fold all", "Fold all modules", () => openAll(false))]);
}

function startGraph() {
  const view = $("graph-view");
  if (D.noGraph) {
    $("graph").hidden = false;
    $("graph-tools").hidden = $("graph-help").hidden = true;
    $("graph-lead").textContent = "The graph is not shown: " + D.noGraph + ". 'octet inspect MODEL --graph FILE.dot' writes it for other programs.";
    return $("graph-body").remove();
  }
  if (!D.graph || !D.graph.nodes.length) return;
  $("graph").hidden = false;
  readGraph();
  graph.order = new Map([...graph.leaves.values()].map((c, i) => [c, i]));
  const marker = (kind) => svg("marker", { id: "arrow-" + kind, class: kind, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
    orient: "auto", markerUnits: "userSpaceOnUse" }, svg("path", { d: "M0 0.8L8 4L0 7.2z" }));
  graph.content = svg("g");
  graph.svg = svg("svg", null, svg("defs", null, ["codes", "convert", "float"].map(marker)), graph.content);
  view.prepend(graph.svg);
  graphLegend();
  openSome();
  redraw(null);
  const s = graph.root.sum;
  $("graph-lead").textContent = plural(s.nodes, "node") + ", " + s.integer + " of them on integers" + (graph.root.children.some((c) => c.module) ? "; folded into modules by their names." : ".");
  startDragging(view);
  startKeys(view);
  view.addEventListener("click", (e) => {
    const item = e.target.closest("g.item");
    if (item && !graph.moved) activate(item.item);
  });
  addEventListener("resize", () => { if (graph.box) setBox(graph.box); });
  setBox({ x: 0, y: 0, width: Infinity });
  if (graph.box.width > view.clientWidth * 1.7) showStart(); // too small to be read
  $("graph-node").replaceChildren(el("p", { class: "hint" }, "Click a module to open or fold it, a node to read its attributes, shapes, scales, kernel and error."));
}
