// SPDX-License-Identifier: Apache-2.0
// Uses the page as people do and writes what it found into the document: "ok NAME" or "not ok NAME".
// Put behind a copy of a report by tests/report/browser.
"use strict";

const results = [], errors = [];
addEventListener("error", (e) => errors.push(e.message));
addEventListener("unhandledrejection", (e) => errors.push(String(e.reason)));

const rows = () => [...document.querySelectorAll("#table tr.row")];
const cell = (row, label) => row.querySelector('td[data-label="' + label + '"]').textContent;
const header = (key) => document.querySelector('#table th[data-key="' + key + '"]');
const say = (ok, name) => results.push((ok ? "ok " : "not ok ") + name);

function search(words) {
  $("search").value = words;
  $("search").dispatchEvent(new Event("input"));
}

// Rows that are made while f runs.
function rowsMade(f) {
  const seen = new MutationObserver(() => {});
  seen.observe($("table"), { childList: true, subtree: true });
  f();
  let n = 0;
  for (const record of seen.takeRecords()) for (const node of record.addedNodes) n += node.matches("tr.row");
  seen.disconnect();
  return n;
}

const texts = (selector) => [...document.querySelectorAll(selector)].map((e) => e.textContent);
const key = (to, name) => to.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
const itemOf = (name) => [...document.querySelectorAll("#graph-view .item")].find((g) => g.getAttribute("aria-label").includes(name));
const press = (g) => g.dispatchEvent(new MouseEvent("click", { bubbles: true }));

// --- sections that all full reports have ---

function checkAccuracy() {
  say(/AP went from .* ± .*the loss is real|within the noise/.test($("accuracy-lead").textContent) && $("cards").textContent.includes("±"), "noise stands beside the change");
  say(document.querySelectorAll("#accuracy .curve").length === 2 && document.querySelectorAll("#accuracy .curve path").length === 4, "two curves of both networks");
  const changes = () => [...document.querySelectorAll("#accuracy table.data tbody tr")].map((r) => Math.abs(Number(r.cells[4].textContent.replace("−", "-"))));
  say(changes().length === 3 && isSorted(changes(), true) && changes()[0] > 0.1, "classes, largest change first");
  document.querySelector("#accuracy table.data thead button").click();
  say(isSorted(texts("#accuracy table.data tbody th"), false), "classes sort by name");
}

function checkTimes() {
  const row = [...document.querySelectorAll("#time table.data tbody tr")].find((r) => r.cells[0].textContent === "Conv");
  const sum = D.steps.filter((s) => s[0] === 1 && s[2].startsWith("Conv+")).reduce((a, s) => a + s[4], 0);
  say(row && Math.abs(Number(row.cells[2].textContent) - sum) < 0.001 && row.cells[3].textContent.endsWith("×"), "time by operator is the sum of its steps");
  say($("time-lead").textContent.includes("20.9–24.4 ms in float") && $("time-body").textContent.includes("load average 6.2 on 2 CPUs"), "spread of times, and that the machine was busy");
}

function checkPictures() {
  const images = [...document.images];
  say(images.length === 4 && images.every((i) => i.alt && i.getAttribute("width") && i.getAttribute("height") && i.loading !== "lazy"), "pictures have words and their size");
  say(texts("#pictures .pair-name")[0].endsWith("1 went, 1 came, 1 moved; 1 the same") && texts("#pictures .pair-name")[1].endsWith("nothing changed; 3 the same"), "what came, went and moved is counted");
  const first = document.querySelectorAll("#picture-list figure");
  const boxes = (f, state) => f.querySelectorAll(".box." + state + " .line").length;
  say(boxes(first[0], "went") === 1 && boxes(first[1], "came") === 1 && boxes(first[0], "moved") === 1 && boxes(first[1], "moved") === 1 && boxes(first[0], "came") === 0,
    "and marked on its side");
  say(document.querySelectorAll("#pictures-legend .key").length === 4, "a legend tells the colours");
  say([...document.querySelectorAll("#picture-list .label")].every((g) => {
    const spare = g.querySelector("rect").width.baseVal.value - g.querySelector("text").getComputedTextLength(), size = Number(g.querySelector("text").getAttribute("font-size"));
    return spare > 0.4 * size && spare < 0.8 * size;
  }), "labels are as wide as their text");
  say(document.querySelectorAll("#table td.name wbr").length > 100, "names of layers go on after a slash");
  document.querySelector("#picture-list .enlarge").click();
  say($("enlarged").open && $("enlarged").querySelectorAll("img").length === 2 && $("enlarged").textContent.includes("a.jpg"), "a picture is enlarged");
  key($("enlarged"), "ArrowRight");
  say($("enlarged").textContent.includes("b.jpg"), "the next one by key");
  $("enlarged").close();
}

function checkGraph() {
  const items = () => document.querySelectorAll("#graph-view .item").length, before = items();
  say(before < 40 && document.querySelectorAll("#graph-view .module:not(.open)").length === 8, "modules are folded");
  press(itemOf("module stage3"));
  say(items() === before + 8 && itemOf("block24").item.node.name.includes("/block24/"), "a module opens where it stands");
  press(itemOf("block24"));
  const told = $("graph-node").textContent;
  say(["Relu", "/model/stage3/block24/conv/Conv", "uint8, scale 0.02, zero 0", "1×8×32×32", "conv:avx2", "error, all quantized"].every((t) => told.includes(t)),
    "a node tells shapes, scales, kernel and error");
  press(itemOf("module stage3"));
  say(items() === before, "and folds again");
  $("graph-search").value = "block50/";
  $("graph-search").dispatchEvent(new Event("input"));
  say(itemOf("module stage6").classList.contains("hit"), "a search marks the folded module");
  key($("graph-search"), "Enter");
  say(graph.selected.node.name.includes("/block50/") && graph.selected.element.classList.contains("selected"), "and opens it by key");
  $("graph-node").querySelector("button").click();
  const selected = document.querySelector("#table tr.selected");
  say(selected && selected.textContent.includes("/block50/") && $("search").value === "" && selected.contains(document.activeElement), "a node finds its layer, through a search");
  selectLayer(20, "graph");
  say(graph.selected.layer.index === 20 && document.activeElement === $("graph-view"), "a layer finds its node");
  const box = graph.svg.getAttribute("viewBox");
  key($("graph-view"), "+");
  say(graph.svg.getAttribute("viewBox") !== box && !$("graph-overview").hidden && $("graph-overview").querySelector(".frame"), "the graph zooms by key, with an overview");
  openAll(true);
  say(document.querySelectorAll("#graph-view .node.integer").length === 54 && document.querySelectorAll("#graph-view .node.float").length === 6, "integer and float nodes");
  say(!isNaN(graph.all.width) && [...document.querySelectorAll("#graph-view .edge")].every((p) => !p.getAttribute("d").includes("NaN")), "edges have places");
  openAll(false);
}

// Where a link of the navigation leads, and an opened row, can be seen.
function checkPlaces() {
  for (const a of document.querySelectorAll("#sections a")) {
    location.hash = "";
    a.click();
    const top = document.querySelector(a.getAttribute("href")).getBoundingClientRect().top;
    const atEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    if (Math.abs(top) > 4 && !(atEnd && top > 0 && top < innerHeight)) say(false, "the link " + a.textContent + " lands at its section, not at " + top);
  }
  say(document.querySelectorAll("#sections a").length === 9, "links to nine sections land");
  selectLayer(22, "table");
  const row = document.querySelector("#table tr.selected").getBoundingClientRect(), head = $("table").tHead.rows[0].cells[1].getBoundingClientRect(); // cells stick, not the head
  say(row.top >= Math.max(0, head.bottom) - 1 && row.bottom < innerHeight, "an opened row is below the head");
}

const isSorted = (values, down) => values.every((v, i) => !i || (down ? values[i - 1] >= v : values[i - 1] <= v));

const checks = {
  plain() {
    say(rows().length === 25 && layers.length === 60, "25 of 60 rows are made");
    header("all").querySelector("button").click();
    const errorsShown = () => rows().map((r) => Number(cell(r, "Error all, %")));
    say(isSorted(errorsShown(), true) && header("all").getAttribute("aria-sort") === "descending", "sorted by error, largest first");
    header("all").querySelector("button").click();
    say(isSorted(errorsShown(), false) && header("all").getAttribute("aria-sort") === "ascending", "sorted the other way");
    header("name").querySelector("button").click();
    say(!header("all").hasAttribute("aria-sort") && isSorted(rows().map((r) => Number(/block(\d+)/.exec(r.textContent)[1])), false),
      "numbers in names are numbers");
    search("BLOCK12/");
    say(rows().length === 1 && rows()[0].textContent.includes("/block12/"), "search finds one");
    search("concat float");
    say(rows().length > 0 && rows().every((r) => cell(r, "Operator") === "Concat" && cell(r, "State").includes("float")), "all words count");
    search("no such layer");
    say(rows().length === 0 && $("count").textContent === "No layer fits.", "search finds none");
    search("");
    document.querySelector('#states input[value="float"]').click();
    say(rows().length === 6 && rows().every((r) => cell(r, "State").startsWith("float")), "only float layers");
    document.querySelector('#states input[value="all"]').click();
    $("sort-by").value = "float down";
    $("sort-by").dispatchEvent(new Event("change"));
    say(isSorted(rows().map((r) => Number(cell(r, "Float, ms"))), true), "sorted by the list, as on a phone");
    rows()[0].querySelector("button").click();
    const detail = document.querySelector("#table tr.detail");
    say(detail && detail.querySelectorAll(".hist .bin").length === 100 && detail.querySelectorAll(".hist .bin.out").length > 5 &&
      detail.querySelectorAll(".hist .edge").length === 2, "a histogram with the range and what it cuts off");
    say(rows()[0].querySelector("button").getAttribute("aria-expanded") === "true", "a row says that it is open");
    rows()[0].querySelector("button").click();
    say(!document.querySelector("#table tr.detail"), "and closes");
    view.open.clear();
    render();
    search("block0/");
    rows()[0].querySelector("button").click();
    say(document.querySelectorAll("#table tr.detail .hist .bin").length > 30 && !document.querySelector("#table tr.detail .hist .bin.out"), "nothing is red where nothing is cut off");
    say(document.querySelector("#table tr.detail .detail-grid").classList.contains("n" + (1 + layers[0].makes.length + layers[0].reads.length)), "as many columns as blocks");
    search("block3/");
    checkGraph();
    checkAccuracy();
    checkTimes();
    checkPictures();
    checkPlaces();
    const ticksShown = texts("#chart .axis text:not(.title)").filter((t) => t.endsWith("%"));
    say(ticksShown.length > 3 && new Set(ticksShown.map((t) => /^10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+ %$/.test(t))).size === 1, "ticks are written in one way");
    $("chart").dispatchEvent(new KeyboardEvent("keydown", { key: "End" }));
    say($("chart-readout").textContent.startsWith("60. "), "the chart reads out by key");
    say(document.querySelectorAll("#chart circle.s-all").length === 60 && document.querySelectorAll("#chart circle.s-alone").length === 54 &&
      document.querySelectorAll("#chart .axis .title").length === 2, "the chart has both errors and titles");
    const theme = document.documentElement.dataset.theme;
    $("theme").click();
    say(document.documentElement.dataset.theme !== theme, "the theme switches");
    search("");
    dispatchEvent(new Event("beforeprint"));
    say(rows().length === 60 && document.querySelectorAll("#accuracy table.data tbody tr").length === 3, "paper has all rows");
    dispatchEvent(new Event("afterprint"));
    say(rows().length < 60, "the screen does not");
    say(document.querySelectorAll("#sections a").length === document.querySelectorAll("main > section:not([hidden])").length, "sections are listed");
    say(document.documentElement.scrollWidth <= innerWidth, "nothing is wider than the window");
  },

  hostile() {
    const names = layers.map((l) => l.name);
    say(names[0] === "<script>document.title='broken'<\/script>" && names[5].startsWith("\u0001\u0002\n\t\u001b[31m\u007f"),
      "names come through as they are");
    say(rows().length === 20 && rows().every((r, i) => r.querySelector("button").textContent === names[i]), "names are shown as text");
    for (const r of rows()) r.querySelector("button").click();
    say(document.querySelectorAll("#table tr.detail").length === 20, "details open");
    say(document.querySelectorAll("script").length === 3 && !document.querySelector("iframe, object, embed, link") &&
      [...document.images].every((i) => i.src.startsWith("data:image/")), "no element was smuggled in");
    say([...document.querySelectorAll("*")].every((e) => [...e.attributes].every((a) => !a.name.startsWith("on"))), "no handler was smuggled in");
    say(!/^broken/.test(document.title) && document.title.endsWith("· octet report"), "nothing was executed");
    say($("title").textContent.startsWith("<\/script><script>"), "the title is text");
    openAll(true);
    for (const g of document.querySelectorAll("#graph-view .item.node")) selectItem(g.item);
    say(document.querySelectorAll("#graph-view .item.node:not(.port)").length === 20, "the graph shows them too");
    say(texts("#accuracy table.data tbody th")[0] === "<\/script><img src=x>" && !$("time-body").textContent.includes("busy"), "classes are text; a quiet machine is not mentioned");
    search("<img src=x");
    say(rows().length === 2, "such a name can be searched for");
    search("__proto__");
    say(rows().length === 2 && cell(rows()[0], "Float, ms") !== "", "and one that JavaScript itself uses");
  },

  thousand() {
    say(layers.length === 1000 && rows().length === 25, "25 of 1,000 rows are made");
    say(rowsMade(() => header("all").querySelector("button").click()) === 25, "sorting makes 25 rows");
    say(rowsMade(() => search("conv")) === 25, "searching makes 25 rows");
    say(rowsMade(() => search("block999/")) === 1, "a search makes what it finds");
    say(rowsMade(() => selectLayer(500, "table")) <= 1100, "finding a layer makes no more than the table has");
    search("");
    $("more").lastChild.click();
    say(rows().length === 1000, "all rows on request");
    say(document.querySelectorAll("#chart *").length < 100, "no dot for each of so many layers");
    say(!$("graph").hidden && document.querySelectorAll("#graph-view .item").length < 100, "the graph begins folded");
    openAll(true);
    say(document.querySelectorAll("#graph-view .item.node:not(.port)").length === 1000, "and opens to 1,000 nodes");
  },

  trained() {
    say(document.querySelectorAll("#training .curve").length === 3 && document.querySelectorAll("#training .curve > svg > path").length === 6, "curves of loss, accuracy and rate");
    say(texts("#training .legend span").includes("<\/script><script>document.title='broken'<\/script>") && document.title === "trained · octet report", "parts of the loss are text");
    say(document.querySelectorAll("#training .curve circle").length === 16, "dots where they are few");
    say([...document.querySelectorAll("#training path")].every((p) => !/NaN|Infinity/.test(p.getAttribute("d"))), "a number that is none is left out");
    say(document.querySelectorAll("#training .cursor").length === 3 && $("cards").textContent.includes("after epoch 35"), "the epoch that was kept is marked");
    say($("training-lead").textContent.includes("resumed"), "that epochs are missing is said");
    say(document.querySelectorAll("#training table.data tbody tr").length === 10, "the last epochs as a table");
    dispatchEvent(new Event("beforeprint"));
    say(document.querySelectorAll("#training table.data tbody tr").length === 37, "paper has all of them");
    say(document.documentElement.scrollWidth <= innerWidth, "nothing is wider than the window");
  },

  tuned() {
    const dots = (c) => document.querySelectorAll("#tuning figure circle" + c).length;
    say(document.querySelectorAll("#tuning figure").length === 2 && dots("") === 8, "the last round over time and over size, without a float network that is far away");
    say(dots(".c2") === 2 && dots(".c0") === 4 && dots(".c5") === 2, "the one chosen and the front have colours");
    say(document.querySelectorAll("#tuning figure line.cursor").length === 2, "the float network's score is a line");
    say([...document.querySelectorAll("#tuning path")].every((p) => !/NaN|Infinity/.test(p.getAttribute("d"))), "the front is a line");
    say(document.title === "tuned · octet report", "settings are text");
    say(document.querySelectorAll("#tuning table.data").length === 2 && texts("#tuning tbody tr").length === 5 + 11, "both rounds as tables, without a score that is none");
    say($("cards").textContent.includes("0.6000") && $("cards").textContent.includes("float 0.6100"), "the best in figures");
    say(document.documentElement.scrollWidth <= innerWidth, "nothing is wider than the window");
  },

  empty() {
    say(document.querySelectorAll("main > section:not([hidden])").length === 1, "only the summary is left");
    say(document.querySelectorAll(".card").length === 0, "without figures no cards");
  },
};

addEventListener("load", () => {
  document.documentElement.style.scrollBehavior = "auto"; // places are looked at at once
  try { checks[document.currentCheck](); } catch (e) { errors.push(e.message); }
  say(errors.length === 0, "no errors" + (errors.length ? ": " + errors.join("; ") : ""));
  const list = document.createElement("pre");
  list.id = "results";
  list.textContent = "\n" + results.join("\n") + "\n";
  document.body.replaceChildren(list);
});
