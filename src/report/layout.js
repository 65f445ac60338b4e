// SPDX-License-Identifier: Apache-2.0
// Layers of boxes from top to bottom: ranks by the longest way, order by barycentres, then places
// that are as near to their neighbours as the boxes allow. Numbers only; nothing is drawn here.

const GAP_X = 18, GAP_Y = 20, BEND = 6; // between boxes, between ranks, width of a passing edge

// Edges that would make a circle are turned round: modules by name may read from each other.
function withoutCircles(items, edges) {
  const out = new Map(items.map((i) => [i, []])), state = new Map();
  for (const e of edges) out.get(e.from).push(e);
  for (const root of items) {
    if (state.has(root)) continue;
    const stack = [[root, 0]];
    state.set(root, 1);
    while (stack.length) {
      const top = stack[stack.length - 1], e = out.get(top[0])[top[1]++];
      if (!e) { state.set(top[0], 2); stack.pop(); continue; }
      if (state.get(e.to) === 1) e.back = true;
      else if (!state.has(e.to)) { state.set(e.to, 1); stack.push([e.to, 0]); }
    }
  }
  return edges.map((e) => (e.back ? { edge: e, a: e.to, b: e.from, ax: e.toX, bx: e.fromX } : { edge: e, a: e.from, b: e.to, ax: e.fromX, bx: e.toX }))
    .filter((l) => l.a !== l.b);
}

function rankItems(items, links) {
  const after = new Map(items.map((i) => [i, []])), open = new Map(items.map((i) => [i, 0]));
  for (const l of links) { after.get(l.a).push(l.b); open.set(l.b, open.get(l.b) + 1); }
  const order = items.filter((i) => !open.get(i));
  for (const i of items) i.rank = 0;
  for (let k = 0; k < order.length; k++)
    for (const b of after.get(order[k])) {
      b.rank = Math.max(b.rank, order[k].rank + 1);
      open.set(b, open.get(b) - 1);
      if (!open.get(b)) order.push(b);
    }
  const fed = new Set(links.map((l) => l.b));
  for (const i of order.slice().reverse()) // what reads nothing stands just above its reader
    if (!fed.has(i) && after.get(i).length && i.port !== "in") i.rank = Math.min(...after.get(i).map((b) => b.rank)) - 1;
  const last = Math.max(0, ...items.map((i) => i.rank + (i.port === "out" ? 0 : 1)));
  for (const i of items) if (i.port === "out") i.rank = Math.max(i.rank, last);
}

// A chain of cells for each edge, with a bend in every rank it passes.
function makeChains(items, links) {
  const cells = items.map((item) => { item.cell = { item, rank: item.rank, width: item.width, up: [], down: [] }; return item.cell; });
  for (const l of links) {
    let at = l.a.cell, shift = l.ax || 0;
    l.chain = [];
    for (let rank = l.a.rank + 1; rank < l.b.rank; rank++) {
      const bend = { rank, width: BEND, up: [], down: [] };
      cells.push(bend);
      l.chain.push(bend);
      join(at, bend, shift, 0);
      at = bend;
      shift = 0;
    }
    join(at, l.b.cell, shift, l.bx || 0);
  }
  return cells;
}

function join(a, b, ax, bx) {
  const weight = (a.item ? 1 : 3) * (b.item ? 1 : 3); // long edges run straight
  a.down.push({ to: b, mine: ax, other: bx, weight });
  b.up.push({ to: a, mine: bx, other: ax, weight });
}

function orderRanks(ranks) {
  const number = (rank) => rank.forEach((c, i) => { c.at = i; });
  ranks.forEach(number);
  const sweep = (rank, side) => {
    for (const c of rank) {
      const near = c[side].map((n) => n.to.at + (n.other || 0) / 1e4);
      c.key = near.length ? near.reduce((a, b) => a + b, 0) / near.length : c.at;
    }
    rank.sort((a, b) => a.key - b.key || a.at - b.at);
    number(rank);
  };
  for (let pass = 0; pass < 6; pass++) {
    for (let k = 1; k < ranks.length; k++) sweep(ranks[k], "up");
    for (let k = ranks.length - 2; k >= 0; k--) sweep(ranks[k], "down");
  }
}

// The places nearest to the wished ones that keep order and distance: neighbours that are too near
// are pooled and share the mean of their wishes.
function settle(rank, wish) {
  const offset = [];
  rank.forEach((c, i) => { offset.push(i ? offset[i - 1] + (rank[i - 1].width + c.width) / 2 + (c.item || rank[i - 1].item ? GAP_X : BEND) : 0); });
  const pools = [];
  rank.forEach((c, i) => {
    let pool = { sum: (wish[i][0] - offset[i]) * wish[i][1], weight: wish[i][1], n: 1 };
    while (pools.length && pools[pools.length - 1].sum / pools[pools.length - 1].weight > pool.sum / pool.weight) {
      const before = pools.pop();
      pool = { sum: before.sum + pool.sum, weight: before.weight + pool.weight, n: before.n + pool.n };
    }
    pools.push(pool);
  });
  let i = 0;
  for (const p of pools) for (let k = 0; k < p.n; k++, i++) rank[i].x = p.sum / p.weight + offset[i];
}

function placeRanks(ranks) {
  const wish = (c, sides) => {
    let sum = 0, weight = 0;
    for (const side of sides)
      for (const n of c[side]) { sum += (n.to.x + n.other - n.mine) * n.weight; weight += n.weight; }
    return weight ? [sum / weight, weight] : [c.x, 0.01];
  };
  for (const rank of ranks) { rank.forEach((c) => { c.x = 0; }); settle(rank, rank.map(() => [0, 1])); }
  for (let pass = 0; pass < 12; pass++) {
    const sides = pass < 8 ? (pass % 2 ? ["down"] : ["up"]) : ["up", "down"];
    for (const rank of pass % 2 ? ranks.slice().reverse() : ranks) settle(rank, rank.map((c) => wish(c, sides)));
  }
}

// Where an edge goes: down through its ranks, bending between them.
function route(l, top, height) {
  const points = [[l.a.x + (l.ax || 0), l.a.y + l.a.height]];
  for (const bend of l.chain) points.push([bend.x, top[bend.rank]], [bend.x, top[bend.rank] + height[bend.rank]]);
  points.push([l.b.x + (l.bx || 0), l.b.y]);
  l.edge.points = l.edge.back ? points.reverse() : points;
}

/*
 * items: { width, height, port } ("in" stands in the first rank, "out" in the last), edges: { from, to,
 * fromX, toX } with places from the middle of a box. Items get x (their middle) and y (their top),
 * edges get points; the size of all is returned.
 */
function layered(items, edges) {
  const links = withoutCircles(items, edges);
  rankItems(items, links);
  const cells = makeChains(items, links), ranks = [];
  for (const c of cells) (ranks[c.rank] = ranks[c.rank] || []).push(c);
  for (let k = 0; k < ranks.length; k++) ranks[k] = ranks[k] || [];
  orderRanks(ranks);
  placeRanks(ranks);
  let left = Infinity, right = -Infinity, y = 0;
  for (const c of cells) { left = Math.min(left, c.x - c.width / 2); right = Math.max(right, c.x + c.width / 2); }
  const top = [], height = [];
  ranks.forEach((rank, k) => {
    height[k] = Math.max(0, ...rank.map((c) => (c.item ? c.item.height : 0)));
    top[k] = y;
    y += height[k] + GAP_Y;
  });
  for (const c of cells) {
    c.x -= left;
    if (c.item) { c.item.x = c.x; c.item.y = top[c.rank] + (c.item.port ? (c.item.port === "out" ? height[c.rank] : 0) : (height[c.rank] - c.item.height) / 2); }
  }
  for (const l of links) route(l, top, height);
  for (const i of items) delete i.cell;
  return { width: items.length ? right - left : 0, height: Math.max(0, y - GAP_Y) };
}
