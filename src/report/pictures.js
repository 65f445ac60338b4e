// SPDX-License-Identifier: Apache-2.0
// What both networks see: boxes that came, went and moved, drawn over the pictures.

const STEADY = 0.9; // boxes that overlap more have not moved
const scenes = { at: -1 };

const stateNames = { went: "went: found in float only", came: "came: found in INT8 only", moved: "moved: the same thing, another box", same: "the same in both" };

function overlap(a, b) {
  const w = Math.min(a[0] + a[2], b[0] + b[2]) - Math.max(a[0], b[0]), h = Math.min(a[1] + a[3], b[1] + b[3]) - Math.max(a[1], b[1]);
  const both = w > 0 && h > 0 ? w * h : 0, any = a[2] * a[3] + b[2] * b[3] - both;
  return any > 0 ? both / any : 0;
}

function stateOf(box, others, alone) {
  if (box[6] < 0) return alone;
  return overlap(box, others[box[6]]) < STEADY ? "moved" : "same";
}

const className = (k) => D.classNames[k] || "class " + k;

// The width of a label, as the page's own font has it.
const pen = document.createElement("canvas").getContext("2d");
function textWidth(text, size, bold) {
  pen.font = (bold ? "600 " : "400 ") + "100px " + getComputedStyle(document.body).fontFamily;
  return (pen.measureText(text).width * size) / 100;
}

// Where the label of a box goes: above it, in it or below it, where no other label is.
function placeLabel(box, text, size, bold, taken, s) {
  const width = textWidth(text, size, bold) + size * 0.6, height = size * 1.3;
  const x = Math.max(0, Math.min(box[0], s.width - width)), inside = (y) => y >= 0 && y + height <= s.height;
  const free = (y) => taken.every((t) => x >= t.x + t.width || t.x >= x + width || y >= t.y + t.height || t.y >= y + height);
  const tries = [box[1] - height, box[1], box[1] + box[3], box[1] + box[3] - height, box[1] + height].filter(inside);
  const place = { x, y: tries.find(free) ?? tries[0] ?? 0, width, height };
  taken.push(place);
  return place;
}

// A box: a dark line below the coloured one, so that it shows on any picture.
function drawBox(box, state) {
  const place = { x: box[0].toFixed(1), y: box[1].toFixed(1), width: Math.max(1, box[2]).toFixed(1), height: Math.max(1, box[3]).toFixed(1) };
  return svg("g", { class: "box " + state }, svg("rect", { class: "below", ...place }), svg("rect", { class: "line", ...place }));
}

function drawLabel(box, state, size, taken, s) {
  const text = className(box[5]) + " " + box[4].toFixed(2), p = placeLabel(box, text, size, state !== "same", taken, s);
  return svg("g", { class: "box " + state }, svg("g", { class: "label" },
    svg("rect", { x: p.x.toFixed(1), y: p.y.toFixed(1), width: p.width.toFixed(1), height: p.height.toFixed(1) }),
    svg("text", { x: (p.x + size * 0.3).toFixed(1), y: (p.y + size).toFixed(1), "font-size": size.toFixed(1) }, text)));
}

function sideOf(s, kind, label, boxes, others, alone) {
  const size = s.width / 42, states = boxes.map((b) => stateOf(b, others, alone)), few = Math.max(boxes.length, others.length) <= 12, taken = [];
  const rank = (i) => (states[i] === "same" ? 1 : 0); // what changed lies on top and has the first choice of places
  const order = boxes.map((b, i) => i).sort((a, b) => rank(a) - rank(b) || boxes[b][4] - boxes[a][4]);
  const labels = order.filter((i) => few || states[i] !== "same").map((i) => drawLabel(boxes[i], states[i], size, taken, s));
  const list = boxes.map((b, i) => className(b[5]) + " " + b[4].toFixed(2) + (states[i] === "same" ? "" : " (" + states[i] + ")"));
  const figure = el("figure", null, el("figcaption", null, el("span", { class: "swatch " + kind }), label + ": " + (boxes.length === 1 ? "1 box" : boxes.length ? boxes.length + " boxes" : "nothing")),
    el("div", { class: "scene" }, s.image ? el("img", { src: s.image, width: s.width, height: s.height,
      alt: s.name + ", " + label + ": " + (list.length ? list.slice(0, 20).join(", ") + (list.length > 20 ? ", …" : "") : "nothing found") }) : null,
    svg("svg", { viewBox: "0 0 " + s.width + " " + s.height, "aria-hidden": "true" }, order.slice().reverse().map((i) => drawBox(boxes[i], states[i])), labels.reverse())));
  figure.style.setProperty("--ratio", (s.width / Math.max(1, s.height)).toFixed(3)); // paper wants it not too high
  return figure;
}

function countStates(s) {
  const n = { went: 0, came: 0, moved: 0, same: 0 };
  for (const b of s.float) n[stateOf(b, s.int8, "went")]++;
  n.came = s.int8.filter((b) => b[6] < 0).length;
  return n;
}

function sceneText(s) {
  const n = countStates(s), parts = ["went", "came", "moved"].filter((k) => n[k]).map((k) => n[k] + " " + k);
  return (parts.length ? parts.join(", ") : "nothing changed") + (n.same ? "; " + n.same + " the same" : "");
}

const bothSides = (s) => el("div", { class: "pair" }, sideOf(s, "float", "float", s.float, s.int8, "went"), sideOf(s, "int", "INT8", s.int8, s.float, "came"));

function enlarge(i) {
  scenes.at = (i + D.scenes.length) % D.scenes.length;
  const s = D.scenes[scenes.at], button = (text, label, f) => el("button", { type: "button", class: "quiet", "aria-label": label, on: { click: f } }, text);
  $("enlarged").replaceChildren(el("div", { class: "enlarged-head" }, el("p", null, el("span", { class: "mono" }, s.name), " " + sceneText(s)),
    el("div", { class: "buttons" }, button("‹", "Picture before", () => enlarge(scenes.at - 1)), button("›", "Next picture", () => enlarge(scenes.at + 1)),
      button("Close", "Close", () => $("enlarged").close()))), bothSides(s));
  if (!$("enlarged").open) $("enlarged").showModal();
}

function startScenes() {
  const total = { went: 0, came: 0, moved: 0, same: 0 };
  for (const s of D.scenes) for (const [k, n] of Object.entries(countStates(s))) total[k] += n;
  $("pictures-lead").textContent = "The " + plural(D.scenes.length, "picture") + (D.scenesSeen > D.scenes.length ? " of " + grouped(D.scenesSeen) : "") +
    " on which the networks differ most, worst first. Boxes with a score above " + short(D.sceneScore, 2) +
    " are shown; those of one class that overlap by half are the same thing. A box that went may only have fallen below that score.";
  const key = (k, label) => el("span", null, svg("svg", { width: 26, height: 14, class: "key", "aria-hidden": "true" },
    svg("g", { class: "box " + k }, svg("rect", { class: "below", x: 2, y: 2, width: 22, height: 10 }), svg("rect", { class: "line", x: 2, y: 2, width: 22, height: 10 }))), label + " (" + total[k] + ")");
  fill($("pictures-legend"), null, Object.entries(stateNames).map(([k, label]) => key(k, label)));
  D.scenes.forEach((s, i) => {
    const pair = bothSides(s);
    pair.addEventListener("click", () => enlarge(i)); // for the mouse; the button is for all
    $("picture-list").append(el("div", { class: "scene-block" }, el("div", { class: "scene-head" },
      el("p", { class: "pair-name" }, el("span", { class: "mono" }, s.name), " " + sceneText(s)),
      el("button", { type: "button", class: "quiet enlarge no-print", "aria-label": "Enlarge " + s.name, on: { click: () => enlarge(i) } }, "Enlarge")), pair));
  });
  $("enlarged").addEventListener("keydown", (e) => { if (e.key === "ArrowLeft") enlarge(scenes.at - 1); else if (e.key === "ArrowRight") enlarge(scenes.at + 1); });
  $("enlarged").addEventListener("click", (e) => { if (e.target === $("enlarged")) $("enlarged").close(); });
}

// Pictures that came with their boxes drawn.
function startDrawn() {
  const side = (kind, label, name, data) => el("figure", null, el("figcaption", null, el("span", { class: "swatch " + kind }), label),
    data ? el("img", { src: data, alt: name + ": what the " + label + " network found" }) : null);
  for (const p of D.pictures)
    $("picture-list").append(el("p", { class: "pair-name" }, p.name), el("div", { class: "pair" },
      side("float", "float", p.name, p.float), side("int", "INT8", p.name, p.int8)));
}

function startPictures() {
  if (!D.pictures.length && !D.scenes.length) return;
  $("pictures").hidden = false;
  if (D.scenes.length) startScenes();
  startDrawn();
}
