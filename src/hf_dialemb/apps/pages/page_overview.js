"use strict";
// What stands beside the map where nothing is chosen, and what stands below it and beside it always.

function overviewPanel(page) {
  const { flow } = page;
  const first = flow.insights.find((section) => section.rows.length);
  return [
    make("h2", { tabindex: -1 }, first ? "What the dialogues show" : flow.title),
    ...flow.insights
      .filter((section) => section.rows.length)
      .map((section) => insightSection(page, section, section === first)),
    foldable("How to read the map", !first, readingHelp(page)),
    foldable("Keys", false, keysHelp()),
    sampleNote(flow),
  ];
}

function insightSection(page, section, open) {
  const row = (found, index) =>
    make(
      "li",
      { class: "insight" },
      found.states.length
        ? make("button", { class: "link", click: () => page.point(found.states) }, found.text)
        : found.text,
      found.dialogues.length > 0 &&
        make(
          "div",
          { class: "chips" },
          found.dialogues
            .filter((id) => page.flow.byDialogue.has(id))
            .slice(0, 4)
            .map((id) => dialogueChip(page, id)),
          restOf(page, found),
        ),
    );
  return foldable(
    section.title,
    open,
    make("p", { class: "hint" }, section.explanation),
    ...listOf(section.rows, row, { most: 6 }),
  );
}

function restOf(page, found) {
  const rest = found.dialogues.length + found.more - 4;
  return rest > 0 ? make("span", { class: "soft" }, `and ${figure(rest)} more`) : null;
}

function readingHelp(page) {
  const lines = [
    "Each box is a state: things that one speaker says to the same end. The thicker its border, the more often.",
    "An arrow leads to what comes next. The thicker it is, the more often that happens; its percentage is of all " +
      "times that something follows the state.",
    "Click a box to read what is said there, an arrow to read which utterances follow each other, the id of a " +
      "dialogue to walk through it.",
    "Move a slider to the right for a smaller map: rare states and transitions go, and with them all that no longer " +
      "lies on a path from start to end. Counts and percentages stay the same.",
  ];
  return make(
    "ul",
    { class: "texts" },
    lines.map((line) => make("li", {}, line)),
  );
}

function keysHelp() {
  const keys = [
    ["/", "search"],
    ["Tab, arrows, Enter", "walk over the map, open a state"],
    ["← →", "step through a dialogue"],
    ["n p", "next, previous dialogue"],
    ["+ − 0", "closer, farther, all in view"],
    ["m", "main path"],
    ["Esc", "back to the overview"],
  ];
  return make(
    "div",
    { class: "legendList" },
    keys.flatMap(([key, text]) => [make("kbd", {}, key), make("span", {}, text)]),
  );
}

function sampleNote(flow) {
  if (flow.dialogues.length === flow.counts.dialogues) return null;
  return make(
    "p",
    { class: "hint" },
    `All counts are of all ${figure(flow.counts.dialogues)} dialogues. ` +
      `So that the page stays small, ${figure(flow.dialogues.length)} of them are in it in full: ` +
      "those that are named here, some for each transition, and others by chance. " +
      `Of each state it has the ${flow.counts.frequent} most frequent texts.`,
  );
}

function drawLegend(page, place) {
  const { flow } = page;
  const item = (name, text) => make("span", {}, make("i", { class: `swatch ${name}` }), text);
  const roles = flow.roles.map((role) => item(roleClass(flow, role), role));
  const lines = flow.comparison
    ? [
        item("line gain", `more in ${isolated(flow.comparison.names[1])}`),
        item("line loss", `more in ${isolated(flow.comparison.names[0])}`),
        make("span", {}, "faint: may be chance"),
        make("span", {}, "numbers: difference in percentage points"),
      ]
    : [
        make("span", {}, "thicker: more often"),
        make("span", {}, "%: how often it comes next"),
        item("line back", "back to an earlier state"),
        make("span", {}, "↻ follows itself"),
      ];
  place.replaceChildren(...roles, ...lines);
}

function drawPath(page, place) {
  const { states, texts, turns, dialogue } = page.flow.main;
  const gap = () => make("li", { class: "gap", title: "Turns are left out here" }, "…");
  const row = (number, place) => {
    const role = roleOf(page.flow, number);
    return make(
      "li",
      {},
      make("i", { class: `swatch ${roleClass(page.flow, role)}`, role: "img", "aria-label": role, title: role }),
      stateLink(page, number, page.flow.texts[texts[place]]),
    );
  };
  const left = (place) => place > 0 && turns[place] > turns[place - 1] + 1;
  place.replaceChildren(...states.flatMap((number, place) => [...(left(place) ? [gap()] : []), row(number, place)]));
  if (page.flow.byDialogue.has(dialogue))
    place.append(make("p", { class: "hint" }, "In the words of ", dialogueChip(page, dialogue)));
}

function drawControls(page) {
  const { flow, graph, view } = page;
  const by = (id) => document.getElementById(id);
  const shown = { nodes: [graph.states, flow.states], edges: [graph.edges, flow.edges] };
  const left = {
    nodes: "said at most PART as often as the most frequent one, or cut off from start or end",
    edges: "below PART of",
  };
  for (const name of ["nodes", "edges"]) {
    const part = `${Number((100 * view[name]).toPrecision(2))} %`;
    by(`${name}-value`).textContent = `Left out: ${view[name] ? left[name].replace("PART", part) : "none"}`;
    by(`${name}-shown`).textContent = shown[name].map((list) => figure(list.length)).join(" of ");
    by(name).setAttribute("aria-valuetext", by(`${name}-value`).textContent);
    if (document.activeElement !== by(name)) by(name).value = 100 * Math.sqrt(view[name]);
  }
  by("weights").value = view.weights;
  by("main").checked = view.main;
  by("reset").disabled = ["nodes", "edges", "weights"].every((name) => view[name] === flow.pruning[name]);
  by("message").textContent = graph.states.length
    ? ""
    : "Nothing is left under these thresholds. Move the sliders to the left.";
}
