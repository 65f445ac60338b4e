// SPDX-License-Identifier: Apache-2.0
// The graph: nodes folded into modules by the paths in their names; opened, searched, moved, zoomed.

const MOST = 80; // boxes of one module; of longer lists neighbours are put together
const graph = { root: null, leaves: new Map(), open: new Set(), selected: null, svg: null, all: null, box: null, hits: [], hit: -1,
  pointers: new Map(), moved: false };

const nodeOf = (l) => (l.node !== undefined ? graph.leaves.get(l.node) : null) || null;

// --- modules ---

const newModule = (name, parent) => ({ name, parent, children: [], module: true });

function addLeaf(leaf, path) {
  let at = graph.root;
  for (const part of path) {
    at.byName = at.byName || new Map();
    if (!at.byName.has(part)) {
      const made = newModule(part, at);
      at.byName.set(part, made);
      at.children.push(made);
    }
    at = at.byName.get(part);
  }
  leaf.parent = at;
  at.children.push(leaf);
}

// A module with one thing in it is that thing; long lists are cut into parts.
function tidy(m) {
  m.children = m.children.map((c) => {
    if (!c.module) return c;
    tidy(c);
    if (c.children.length > 1) return c;
    const only = c.children[0];
    if (only.module) only.name = c.name + "/" + only.name;
    else only.label = only.port ? only.label : c.name + "/" + only.label;
    only.parent = m;
    return only;
  });
  if (m.children.length <= MOST) return;
  const size = Math.max(10, Math.ceil(Math.sqrt(m.children.length))), parts = [];
  for (let i = 0; i < m.children.length; i += size) {
    const children = m.children.slice(i, i + size), part = newModule("part " + (parts.length + 1), m);
    part.isPart = true;
    part.children = children;
    for (const c of children) c.parent = part;
    parts.push(part);
  }
  m.children = parts;
  if (parts.length > MOST) tidy(m);
}

// What a folded module tells of its nodes.
function countUp(m) {
  m.sum = { nodes: 0, integer: 0, float: 0, ms: 0, floatMs: 0, worst: null };
  for (const c of m.children) {
    const s = c.module ? countUp(c) : leafSum(c);
    for (const key of ["nodes", "integer", "float", "ms", "floatMs"]) m.sum[key] += s[key];
    if (s.worst && (!m.sum.worst || s.worst.all[0] > m.sum.worst.all[0])) m.sum.worst = s.worst;
  }
  return m.sum;
}

function leafSum(c) {
  const l = c.layer;
  return { nodes: c.node ? 1 : 0, integer: c.node && c.node.integer ? 1 : 0, float: c.node && !c.node.integer ? 1 : 0, ms: (l && l.int8Ms) || 0,
    floatMs: (l && l.floatMs) || 0, worst: l && l.all ? l : null };
}

function readGraph() {
  const byNode = new Map(layers.filter((l) => l.node !== undefined).map((l) => [l.node, l]));
  graph.root = newModule("", null);
  const add = (id, leaf, path) => { leaf.id = id; graph.leaves.set(id, leaf); addLeaf(leaf, path); };
  D.graph.inputs.forEach((v, i) => add(-1 - i, { label: v.value, port: "input", value: v, in: [] }, []));
  for (const n of D.graph.nodes) {
    const path = n.name.split("/").filter(Boolean);
    add(n.id, { label: path[path.length - 1] || n.op, node: n, layer: byNode.get(n.id), in: n.in }, path.slice(0, -1));
  }
  D.graph.outputs.forEach((v, i) => add("out" + i, { label: v.value, port: "output", value: v, in: [v] }, []));
  tidy(graph.root);
  countUp(graph.root);
  graph.edges = [];
  for (const to of graph.leaves.values())
    for (const e of to.in) {
      const from = e.from !== undefined ? graph.leaves.get(e.from) : null;
      if (from) graph.edges.push({ from, to, kind: e.kind, shape: e.shape });
    }
}

// As much as can be taken in at a glance: whole levels, and modules that stand alone.
function openSome() {
  graph.open = new Set([graph.root]);
  for (let level = [graph.root], shown = graph.root.children.length; level.length;) {
    const next = level.flatMap((m) => m.children.filter((c) => c.module));
    const more = next.reduce((n, c) => n + c.children.length - 1, 0);
    if (next.length > 1 && shown + more > 28) return;
    for (const c of next) graph.open.add(c);
    shown += more;
    level = next;
  }
}

// --- layout: a module that is open is laid out on its own, then stands as one box among others ---

const isOpen = (i) => i.module && graph.open.has(i);

const aboutItem = (c) => (c.module ? c.sum.nodes + " nodes" + (c.sum.ms ? ", " + short(c.sum.ms, 2) + " ms" : "") : c.port ? "" : c.node.op);

function boxOf(i) {
  const text = Math.max(Math.min(30, (i.module ? i.name : i.label).length + 2) * (i.module ? 7 : 6.2), aboutItem(i).length * (i.module ? 6 : 7.4));
  return { width: Math.max(i.port ? 70 : 90, text + 20), height: i.module ? 38 : i.port ? 24 : 34 };
}

// The child of `m` that holds leaf `c`; null: outside.
function within(m, c) {
  for (let at = c; at; at = at.parent) if (at.parent === m) return at;
  return null;
}

function layOut(m, edges) {
  const inner = new Map(), items = new Map(), ports = { in: new Map(), out: new Map() }, merged = new Map();
  const shown = (c) => { if (!items.has(c)) items.set(c, { of: c }); return items.get(c); };
  const port = (side, leaf) => {
    if (!ports[side].has(leaf)) ports[side].set(leaf, { port: side, width: 8, height: 2 });
    return ports[side].get(leaf);
  };
  for (const c of m.children) { shown(c); if (isOpen(c)) inner.set(c, []); }
  for (const e of edges) {
    const a = within(m, e.from), b = within(m, e.to);
    if (a && inner.has(a)) inner.get(a).push(e);
    if (b && b !== a && inner.has(b)) inner.get(b).push(e);
  }
  for (const [c, list] of inner) shown(c).size = layOut(c, list);
  for (const [c, item] of items) Object.assign(item, item.size ? { width: item.size.width, height: item.size.height } : boxOf(c));
  for (const e of edges) {
    const a = within(m, e.from), b = within(m, e.to);
    if (a === b) continue;
    const from = a ? items.get(a) : port("in", e.from), to = b ? items.get(b) : port("out", e.from);
    from.key = from.key || ++layOut.key; to.key = to.key || ++layOut.key;
    const key = from.key + " " + to.key + (from.size || to.size ? " " + graph.order.get(e.from) : "");
    const old = merged.get(key);
    if (old) { old.n++; if (e.kind === "convert") old.kind = e.kind; if (old.shape !== e.shape) old.shape = ""; continue; }
    merged.set(key, { from, to, kind: e.kind, shape: e.shape, n: 1,
      fromX: from.size ? portX(from, "out", e.from) : 0, toX: to.size ? portX(to, "in", e.from) : 0 });
  }
  const all = [...ports.in.values(), ...items.values(), ...ports.out.values()];
  const size = layered(all, [...merged.values()]);
  const head = m === graph.root ? 0 : 28, side = m === graph.root ? 0 : 14;
  for (const e of merged.values()) { // from border to border
    if (e.from.port && e.points) e.points[0][1] = -head;
    if (e.to.port && e.points) e.points[e.points.length - 1][1] = size.height + side;
  }
  m.drawn = { items: [...items.values()], edges: [...merged.values()], head, side };
  const width = Math.max(size.width + 2 * side, m === graph.root ? 0 : Math.min(260, m.name.length * 7 + 60));
  m.drawn.shift = (width - size.width) / 2;
  return { width, height: size.height + head + side, ports, shift: m.drawn.shift };
}
layOut.key = 0;

const portX = (item, side, leaf) => {
  const p = item.size.ports[side].get(leaf);
  return p ? p.x + item.size.shift - item.width / 2 : 0;
};

// --- drawing ---

function pathOf(points, x, y) {
  const p = points.map(([a, b]) => [(a + x).toFixed(1), (b + y).toFixed(1)]);
  let d = "M" + p[0].join(" ");
  for (let i = 1; i < p.length; i++) {
    const middle = ((Number(p[i - 1][1]) + Number(p[i][1])) / 2).toFixed(1);
    d += p[i][0] === p[i - 1][0] ? "L" + p[i].join(" ") : "C" + [p[i - 1][0], middle, p[i][0], middle, p[i][0], p[i][1]].join(" ");
  }
  return d;
}

const cut = (text, n) => (text.length > n ? "…" + text.slice(text.length - n + 1) : text);
const kindOf = (c) => (!c.module ? (c.port ? "port" : c.node.integer ? "integer" : "float") :
  c.sum.float && c.sum.integer ? "mixed" : c.sum.integer ? "integer" : "float");

function drawItem(to, item, x, y) {
  const c = item.of, w = item.width, h = item.height, open = isOpen(c);
  const name = c.module ? cut(c.name, open ? 40 : 30) : cut(c.label, 30);
  const about = aboutItem(c);
  const g = svg("g", { class: "item " + (c.module ? "module " + (open ? "open " : "") : "node ") + kindOf(c), tabindex: "0", role: "button",
    "aria-label": (c.module ? "module " + c.name + ", " + about + (open ? ", open" : ", folded") : (c.port ? c.port + " " : "") + c.label + " " + about),
    transform: "translate(" + (x - w / 2).toFixed(1) + " " + y.toFixed(1) + ")" },
    svg("rect", { width: w.toFixed(1), height: h.toFixed(1), rx: c.port ? 12 : 5 }));
  c.element = g;
  c.place = { x: x - w / 2, y, width: w, height: h };
  g.item = c;
  if (open) {
    g.append(svg("text", { x: 12, y: 18, class: "head" }, "▾ " + name));
    to.append(g);
    drawModule(to, c, x - w / 2, y);
    return;
  }
  if (c.port) g.append(svg("text", { x: w / 2, y: 16, "text-anchor": "middle" }, name));
  else g.append(svg("text", { x: w / 2, y: c.module ? 16 : 15, "text-anchor": "middle", class: "head" }, c.module ? "▸ " + name : about),
    svg("text", { x: w / 2, y: c.module ? 31 : 28, "text-anchor": "middle", class: "small" }, c.module ? about : name));
  to.append(g);
}

function drawModule(to, m, x, y) {
  const left = x + m.drawn.shift, top = y + m.drawn.head;
  for (const e of m.drawn.edges) {
    if (!e.points) continue;
    to.append(svg("path", { class: "edge " + e.kind, d: pathOf(e.points, left, top), "marker-end": e.to.port || e.to.size ? null : "url(#arrow-" + e.kind + ")" },
      svg("title", null, (e.n > 1 ? e.n + " values" : "one value") + (e.shape ? " of " + e.shape : "") + (e.kind === "codes" ? ", codes" : e.kind === "convert" ? ", converted" : ""))));
  }
  for (const item of m.drawn.items) drawItem(to, item, item.x + left, item.y + top);
}

// Lays out what is open and draws it; `keep` stays where it was on the screen.
function redraw(keep) {
  const before = keep && keep.place && graph.box ? { x: keep.place.x - graph.box.x, y: keep.place.y - graph.box.y } : null;
  for (const c of graph.leaves.values()) c.element = c.place = null;
  const size = layOut(graph.root, graph.edges);
  const content = svg("g");
  drawModule(content, graph.root, 0, 0);
  graph.content.replaceChildren(content);
  graph.all = { x: -16, y: -16, width: size.width + 32, height: size.height + 32 };
  drawOverview();
  markAll();
  if (before && keep.place) setBox({ x: keep.place.x - before.x, y: keep.place.y - before.y, width: graph.box.width });
  else if (graph.box) setBox(graph.box);
}

function drawOverview() {
  const list = [];
  const walk = (m) => { for (const item of m.drawn.items) if (isOpen(item.of)) walk(item.of); else list.push(item.of); };
  walk(graph.root);
  const a = graph.all, size = Math.max(a.width / 150, a.height / 150);
  $("graph-overview").style.width = (a.width / size).toFixed(0) + "px";
  $("graph-overview").style.height = (a.height / size).toFixed(0) + "px";
  graph.frame = svg("rect", { class: "frame" });
  $("graph-overview").replaceChildren(svg("svg", { viewBox: [a.x, a.y, a.width, a.height].map((v) => v.toFixed(0)).join(" "), "aria-hidden": "true" },
    list.map((c) => svg("rect", { class: kindOf(c), x: c.place.x.toFixed(0), y: c.place.y.toFixed(0), width: c.place.width.toFixed(0), height: c.place.height.toFixed(0) })),
    graph.frame));
}

// --- opening, finding, selecting ---

function toggleModule(m) {
  if (graph.open.has(m)) graph.open.delete(m); else graph.open.add(m);
  redraw(m);
  if (m.element) m.element.focus({ preventScroll: true });
}

function reveal(c) {
  let changed = false;
  for (let m = c.parent; m; m = m.parent) if (!graph.open.has(m)) { graph.open.add(m); changed = true; }
  if (changed) redraw(null);
}

function markAll() {
  for (const old of graph.content.querySelectorAll(".selected, .hit")) old.classList.remove("selected", "hit");
  for (const c of graph.hits) for (let at = c; at; at = at.parent) if (at.element && !isOpen(at)) at.element.classList.add("hit");
  if (graph.selected && graph.selected.element) graph.selected.element.classList.add("selected");
}

function selectItem(c) {
  graph.selected = c;
  markAll();
  showItem(c);
}

function centre(c) {
  const width = Math.min(graph.box.width, Math.max(320, $("graph-view").clientWidth)), p = c.place;
  const height = width * $("graph-view").clientHeight / Math.max(1, $("graph-view").clientWidth);
  setBox({ x: p.x + p.width / 2 - width / 2, y: p.y + p.height / 2 - height / 2, width });
}

// Highlights the node of a layer; brings it into view if asked to.
function markNode(l, show) {
  const c = graph.svg ? nodeOf(l) : null;
  if (!c || !show) return;
  reveal(c);
  selectItem(c);
  centre(c);
  $("graph").scrollIntoView();
  $("graph-view").focus({ preventScroll: true });
}

function findNodes(words) {
  const list = words.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (c) => (c.node ? c.node.name + " " + c.node.op : c.label).toLowerCase();
  graph.hits = list.length ? [...graph.leaves.values()].filter((c) => list.every((w) => text(c).includes(w))) : [];
  graph.hit = -1;
  markAll();
  $("graph-count").textContent = !list.length ? "" : graph.hits.length ? plural(graph.hits.length, "node") + "; Enter goes through them" : "No node fits.";
}

function nextHit(step) {
  if (!graph.hits.length) return;
  graph.hit = (graph.hit + step + graph.hits.length) % graph.hits.length;
  const c = graph.hits[graph.hit];
  reveal(c);
  selectItem(c);
  centre(c);
  $("graph-count").textContent = graph.hit + 1 + " of " + plural(graph.hits.length, "node");
}
