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
    search("block3/");
    const node = document.querySelector('#graph-view g.node[data-index="50"]');
    node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    const selected = document.querySelector("#table tr.selected");
    say(selected && selected.textContent.includes("/block50/") && $("search").value === "" && selected.contains(document.activeElement),
      "a node finds its layer, through a search");
    selectLayer(20, "graph");
    say(document.querySelector("#graph-view .node.selected").dataset.index === "20" && document.activeElement === $("graph-view"),
      "a layer finds its node");
    const box = $("graph-view").querySelector("svg").getAttribute("viewBox");
    $("graph-view").dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
    say($("graph-view").querySelector("svg").getAttribute("viewBox") !== box, "the graph zooms by key");
    say(document.querySelectorAll("#graph-view .node.integer").length === 54 && document.querySelectorAll("#graph-view .node.float").length === 6,
      "integer and float nodes");
    $("chart").dispatchEvent(new KeyboardEvent("keydown", { key: "End" }));
    say($("chart-readout").textContent.startsWith("60. "), "the chart reads out by key");
    say(document.querySelectorAll("#chart circle.s-all").length === 60 && document.querySelectorAll("#chart circle.s-alone").length === 54 &&
      document.querySelectorAll("#chart .axis .title").length === 2, "the chart has both errors and titles");
    const theme = document.documentElement.dataset.theme;
    $("theme").click();
    say(document.documentElement.dataset.theme !== theme, "the theme switches");
    search("");
    dispatchEvent(new Event("beforeprint"));
    say(rows().length === 60, "paper has all rows");
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
    say(document.querySelectorAll("script").length === 3 && !document.querySelector("img, iframe, object, embed, link"), "no element was smuggled in");
    say([...document.querySelectorAll("*")].every((e) => [...e.attributes].every((a) => !a.name.startsWith("on"))), "no handler was smuggled in");
    say(!/^broken/.test(document.title) && document.title.endsWith("· octet report"), "nothing was executed");
    say($("title").textContent.startsWith("<\/script><script>"), "the title is text");
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
    say($("graph").hidden === false && document.querySelectorAll("#graph-view .node").length === 1002, "the graph is there");
  },

  empty() {
    say(document.querySelectorAll("main > section:not([hidden])").length === 1, "only the summary is left");
    say(document.querySelectorAll(".card").length === 0, "without figures no cards");
  },
};

addEventListener("load", () => {
  try { checks[document.currentCheck](); } catch (e) { errors.push(e.message); }
  say(errors.length === 0, "no errors" + (errors.length ? ": " + errors.join("; ") : ""));
  const list = document.createElement("pre");
  list.id = "results";
  list.textContent = "\n" + results.join("\n") + "\n";
  document.body.replaceChildren(list);
});
