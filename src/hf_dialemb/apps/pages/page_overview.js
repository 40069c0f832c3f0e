"use strict";
// What stands beside the map where nothing is chosen, and what stands below it and beside it always.

function overviewPanel(page) {
  const { flow } = page;
  const hasEnds = flow.insights.length > 0;
  return [
    title(hasEnds ? "How dialogues end" : flow.title),
    ...(hasEnds ? endsList(page) : []),
    foldable("How to read the map", !hasEnds, readingHelp()),
    sampleNote(flow),
  ];
}

function endsList(page) {
  const row = ({ states, text, dialogues, more }) => {
    const known = dialogues.filter((id) => page.flow.byDialogue.has(id));
    const rest = dialogues.length - known.length + more;
    return make(
      "li.insight",
      states.length ? make("button.link", { click: () => page.point(states) }, text) : text,
      ...listOf("div.chips", known, (id) => dialogueChip(page, id), 4),
      rest > 0 && make("span.soft", `and ${figure(rest)} that are not in this page`),
    );
  };
  const explanation = "The last sign of success or failure in each conversation, or where it stops without one.";
  return [make("p.hint", explanation), ...listOf("ul", page.flow.insights, row, 6)];
}

function readingHelp() {
  const lines = [
    "Each box is a state: things that one speaker says to the same end. The thicker its border, the more often.",
    "An arrow leads to what comes next. The thicker it is, the more often that happens; its percentage is of all " +
      "times that something follows the state.",
    "Click a box to read what is said there, an arrow to read which utterances follow each other, the id of a " +
      "dialogue to walk through it.",
    "Move a slider to the right for a smaller map: rare states and transitions go, and with them all that no longer " +
      "lies on a path from start to end. Counts and percentages stay the same.",
    "Keys: / searches, ← and → step through a dialogue, + − 0 zoom, Escape goes back to the overview.",
  ];
  return make("ul.texts", lines.map((line) => make("li", line)));
}

function sampleNote(flow) {
  if (flow.dialogues.length === flow.counts.dialogues) return null;
  return make(
    "p.hint",
    `All counts are of all ${figure(flow.counts.dialogues)} dialogues. ` +
      `So that the page stays small, ${figure(flow.dialogues.length)} of them are in it in full: ` +
      "those that are named here, and others by chance. " +
      `Of each state it has the ${flow.counts.frequent} most frequent texts.`,
  );
}

function drawLegend(page, place) {
  const { flow } = page;
  const item = (kind, text) => make("span", make(`i.swatch.${kind}`), text);
  const roles = flow.roles.map((role) => item(roleClass(flow, role), role));
  const compared = ([one, other]) => [
    item("line.gain", `more in ${isolated(other)}`),
    item("line.loss", `more in ${isolated(one)}`),
    make("span", "faint: may be chance"),
    make("span", "numbers: difference in percentage points"),
  ];
  const plain = () => [
    make("span", "thicker: more often"),
    make("span", "%: how often it comes next"),
    item("line.back", "back to an earlier state"),
    make("span", "↻ follows itself"),
  ];
  place.replaceChildren(...roles, ...(flow.comparison ? compared(flow.comparison.names) : plain()));
}

function drawPath(page, place) {
  const { flow } = page;
  const { states, texts, turns, dialogue } = flow.main;
  const rows = states.flatMap((number, step) => {
    const role = roleOf(flow, number);
    const swatch = make(`i.swatch.${roleClass(flow, role)}`, { role: "img", "aria-label": role });
    const row = make("li", swatch, stateLink(page, number, flow.texts[texts[step]]));
    const isLeftOut = step > 0 && turns[step] > turns[step - 1] + 1;
    return isLeftOut ? [make("li.gap", { title: "Turns are left out here" }, "…"), row] : [row];
  });
  place.replaceChildren(...rows);
  if (flow.byDialogue.has(dialogue)) place.append(make("p.hint", "In the words of ", dialogueChip(page, dialogue)));
}

function drawControls(page) {
  const { flow, graph, view } = page;
  const by = (id) => document.getElementById(id);
  const shown = { nodes: [graph.states, flow.states], edges: [graph.edges, flow.edges] };
  for (const [name, lists] of Object.entries(shown)) {
    by(`${name}-shown`).textContent = lists.map((list) => figure(list.length)).join(" of ");
    by(name).setAttribute("aria-valuetext", by(`${name}-shown`).textContent);
    if (document.activeElement !== by(name)) by(name).value = 100 * Math.sqrt(view[name]);
  }
  by("main").checked = view.main;
  by("message").textContent = graph.states.length
    ? ""
    : "Nothing is left under these thresholds. Move the sliders to the left.";
}
