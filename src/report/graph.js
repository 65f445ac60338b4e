// SPDX-License-Identifier: Apache-2.0
// The graph: moved and zoomed by its view box; nodes and layers find each other.

const graph = { svg: null, all: null, box: null, nodes: new Map(), pointers: new Map(), moved: false };

const nodeOf = (l) => (graph.svg && l.node !== undefined ? graph.nodes.get("n" + l.node) : null);

function setBox(box) {
  const view = $("graph-view");
  const widest = graph.all.width * 4 + 100, least = 60;
  const width = Math.max(least, Math.min(widest, box.width));
  const height = width * view.clientHeight / Math.max(1, view.clientWidth);
  graph.box = {
    x: Math.max(graph.all.x - width * 0.8, Math.min(graph.all.x + graph.all.width - width * 0.2, box.x)),
    y: Math.max(graph.all.y - height * 0.8, Math.min(graph.all.y + graph.all.height - height * 0.2, box.y)),
    width, height,
  };
  graph.svg.setAttribute("viewBox", [graph.box.x, graph.box.y, width, height].map((v) => v.toFixed(2)).join(" "));
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
  const view = $("graph-view"), width = Math.max(300, view.clientWidth * 0.8);
  const first = graph.svg.querySelector("g.node"), b = first ? first.getBBox() : { x: 0, width: graph.all.width };
  const fits = graph.all.width + 24 <= width;
  setBox({ x: fits ? graph.all.x - (width - graph.all.width) / 2 : b.x + b.width / 2 + graph.shiftX - width / 2, y: graph.all.y - 12, width });
}

function showAll() {
  const view = $("graph-view"), ratio = view.clientWidth / Math.max(1, view.clientHeight);
  const width = Math.max(graph.all.width, graph.all.height * ratio) * 1.04;
  graph.box = { x: 0, y: 0, width, height: width / ratio };
  graph.box.x = graph.all.x + (graph.all.width - width) / 2;
  graph.box.y = graph.all.y + (graph.all.height - width / ratio) / 2;
  graph.svg.setAttribute("viewBox", [graph.box.x, graph.box.y, width, width / ratio].map((v) => v.toFixed(2)).join(" "));
}

// Highlights the node of a layer; brings it into view if asked to.
function markNode(l, show) {
  if (!graph.svg) return;
  const old = graph.svg.querySelector(".node.selected"), node = nodeOf(l);
  if (old) old.classList.remove("selected");
  if (!node) return;
  node.classList.add("selected");
  const b = node.getBBox(), width = Math.min(graph.box.width, 900);
  const view = $("graph-view"), height = width * view.clientHeight / Math.max(1, view.clientWidth);
  setBox({ x: b.x + graph.shiftX + b.width / 2 - width / 2, y: b.y + graph.shiftY + b.height / 2 - height / 2, width });
  if (show) {
    $("graph").scrollIntoView();
    view.focus({ preventScroll: true });
  }
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
}

function startKeys(view) {
  const actions = { ArrowLeft: () => move(-0.15, 0), ArrowRight: () => move(0.15, 0), ArrowUp: () => move(0, -0.15),
    ArrowDown: () => move(0, 0.15), "+": () => zoom(1.3), "=": () => zoom(1.3), "-": () => zoom(1 / 1.3), 0: showAll, Home: showStart };
  view.addEventListener("keydown", (e) => {
    if (!actions[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    actions[e.key]();
    e.preventDefault();
  });
}

// --- start ---

// Graphviz names nodes by their ids; people want theirs.
function nameNodes() {
  const byNode = new Map(layers.filter((l) => l.node !== undefined).map((l) => ["n" + l.node, l]));
  for (const node of graph.svg.querySelectorAll("g.node")) {
    const l = byNode.get(node.id), title = node.querySelector("title");
    graph.nodes.set(node.id, node);
    if (title) title.textContent = l ? l.name : "";
    if (!l) continue;
    node.classList.add("has-layer");
    node.dataset.index = l.index;
  }
  for (const title of graph.svg.querySelectorAll("g.edge > title, g.graph > title")) title.remove();
}

function startGraph() {
  const view = $("graph-view");
  if (D.noGraph) {
    $("graph").hidden = false;
    $("graph-bar").hidden = $("graph-help").hidden = true;
    $("graph-lead").textContent = "The graph is not drawn: " + D.noGraph + ". 'octet inspect MODEL --graph FILE.dot' writes it for other programs.";
    return view.remove();
  }
  graph.svg = view.querySelector("svg");
  if (!graph.svg) return;
  $("graph").hidden = false;
  const b = graph.svg.viewBox.baseVal, main = graph.svg.querySelector("g.graph").transform.baseVal.consolidate();
  graph.all = { x: b.x, y: b.y, width: b.width, height: b.height };
  graph.shiftX = main ? main.matrix.e : 0;
  graph.shiftY = main ? main.matrix.f : 0;
  for (const name of ["width", "height"]) graph.svg.removeAttribute(name);
  nameNodes();
  const line = (kind) => svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, svg("path", { class: "line-" + kind, d: "M0 5H26" }));
  fill($("graph-legend"), null, [
    el("span", null, el("span", { class: "state int" }, "integer"), "computes on integers"),
    el("span", null, el("span", { class: "state float" }, "float"), "computes on floats"),
    el("span", null, line("codes"), "codes"), el("span", null, line("convert"), "conversion"), el("span", null, line("float"), "floats")]);
  const button = (text, label, f) => el("button", { type: "button", "aria-label": label, on: { click: f } }, text);
  fill($("graph-buttons"), null, [button("+", "Zoom in", () => zoom(1.4)), button("−", "Zoom out", () => zoom(1 / 1.4)),
    button("Start", "Show the beginning", showStart), button("All", "Show all of it", showAll)]);
  startDragging(view);
  startKeys(view);
  view.addEventListener("click", (e) => {
    const node = e.target.closest("g.node.has-layer");
    if (node && !graph.moved) selectLayer(Number(node.dataset.index), "table");
  });
  addEventListener("resize", () => setBox(graph.box));
  showStart();
}
