"use strict";
// What stands beside the map of a state, of a transition and of a dialogue.

function backBar(page, ...more) {
  const back = { click: () => page.show(NOTHING), "aria-keyshortcuts": "Escape" };
  return make("div.bar", make("button", back, "← Overview"), ...more);
}

function terminalPanel(page, number) {
  const begins = number === page.flow.start;
  const name = begins ? "How dialogues begin" : "How dialogues end";
  return [backBar(page), title(name), ...(begins ? stepsFrom(page, number) : stepsTo(page, number))];
}

function statePanel(page, number) {
  if (number >= page.flow.start) return terminalPanel(page, number);
  const { flow } = page;
  const state = flow.states[number];
  const through = flow.dialogues.filter((dialogue) => dialogue.states.includes(number));
  const size = `${state.id} · ${counted(state.size, "utterance")}, ${figure(state.distinct)} different`;
  const dialogues = `in ${figure(state.through)} of ${counted(flow.counts.dialogues, "dialogue")}`;
  const share = percent(state.through / flow.counts.dialogues);
  const part = `Dialogues: ${figure(through.length)} of ${figure(state.through)} are in this page`;
  const others = state.distinct - state.frequent.length;
  const frequentRow = ([text, times]) =>
    make("li", make("span", flow.texts[text]), make("span.times", `${figure(times)} ×`));
  const chip = ({ id, states }) => make("li", dialogueChip(page, id, String(states.indexOf(number) + 1)));
  return [
    backBar(page),
    title(state.name),
    make("p.soft", roleTag(flow, state.role), ` ${size} · ${dialogues} (${share})`),
    hiddenNote(page, number),
    make("div.chips", state.phrases.map((phrase) => make("span.chip", phrase))),
    make("h3", "Typical utterances"),
    ...listOf("ul.texts", state.examples, (text) => make("li", flow.texts[text]), 4),
    make("h3", "What comes next"),
    ...stepsFrom(page, number),
    make("h3", "What came before"),
    ...stepsTo(page, number),
    make("h3", "Said most often"),
    ...listOf("ul.texts.counted", state.frequent, frequentRow, 6),
    others > 0 && make("p.hint", `and ${figure(others)} others`),
    make("h3", through.length === state.through ? "Dialogues" : part),
    ...listOf("ul.chips", through, chip, 24),
  ];
}

function hiddenNote(page, number) {
  if (page.graph.states.includes(number)) return null;
  const open = () => page.show({ nodes: 0, edges: 0 });
  const button = make("button.button", { click: open }, "Show all states");
  return make("p.note", "Too rare for the map as it is set. ", button);
}

function stepsFrom(page, number) {
  return steps(page, "target", page.flow.edges.filter((edge) => edge.source === number));
}

function stepsTo(page, number) {
  return steps(page, "source", page.flow.edges.filter((edge) => edge.target === number));
}

// What leads to or from a state, with shares: of what follows a state, or of what precedes it.
function steps(page, end, edges) {
  const { flow } = page;
  const sum = edges.reduce((so, edge) => so + edge.count, 0);
  const row = (edge) => {
    const names = `Pairs of utterances, ${nameOf(flow, edge.source)} to ${nameOf(flow, edge.target)}`;
    const open = () => page.show({ edge: edge.key });
    const made = make(
      "li",
      { class: roleClass(flow, roleOf(flow, edge[end])) },
      stateLink(page, edge[end]),
      make("span.times", `${percent(edge.count / sum)} · ${figure(edge.count)}`),
      make("button.pairs", { "aria-label": names, click: open }, "pairs"),
    );
    made.style.setProperty("--share", `${(100 * edge.count) / sum}%`);
    return made;
  };
  return listOf("ul.steps", edges.sort((one, other) => other.count - one.count), row, 8);
}

// The pairs of utterances on a transition, equal ones together, with where each is found.
function pairsOn(flow, edge) {
  const pairs = new Map();
  for (const dialogue of flow.dialogues) {
    const path = pathOf(flow, dialogue);
    for (let place = 1; place < path.length; place++) {
      if (path[place - 1] !== edge.source || path[place] !== edge.target) continue;
      const said = [dialogue.texts[place - 2], dialogue.texts[place - 1]];
      const key = said.join();
      if (!pairs.has(key)) pairs.set(key, { said, found: [] });
      pairs.get(key).found.push({ id: dialogue.id, turn: Math.min(place, dialogue.states.length) });
    }
  }
  return [...pairs.values()].sort((one, other) => other.found.length - one.found.length);
}

function edgePanel(page, key) {
  const { flow } = page;
  const edge = flow.byKey.get(key);
  const pairs = pairsOn(flow, edge);
  const found = pairs.reduce((sum, pair) => sum + pair.found.length, 0);
  const part = found < edge.count ? `; ${figure(found)} of them are in this page` : "";
  return [
    backBar(page),
    title(stateLink(page, edge.source), " → ", stateLink(page, edge.target)),
    make("p.soft", `${percent(edge.share)} of the time, ${figure(edge.count)} times${part}`),
    comparedNote(page, key),
    make("h3", "Pairs of utterances"),
    ...listOf("ul", pairs, (pair) => pairRow(page, edge, pair), 25),
  ];
}

function comparedNote(page, key) {
  const found = page.differences?.get(key);
  if (!found) return null;
  const shares = page.flow.comparison.names.map((name, set) => `${isolated(name)}: ${shareIn(found, set)}`);
  return make("p", `${shares.join(" · ")} · p = ${printedChance(found.p, found)}`);
}

function pairRow(page, edge, { said, found }) {
  const { flow } = page;
  const line = (number, text) =>
    text !== undefined && make("p", { class: roleClass(flow, roleOf(flow, number)) }, flow.texts[text]);
  const times = found.length > 1 && make("span.soft", `${found.length} ×`);
  const chips = found.slice(0, 3).map(({ id, turn }) => dialogueChip(page, id, String(turn)));
  return make("li.pair", line(edge.source, said[0]), line(edge.target, said[1]), make("div.chips", times, chips));
}

function dialoguePanel(page, id, turn) {
  const { flow } = page;
  const dialogue = flow.byDialogue.get(id);
  const number = flow.dialogues.indexOf(dialogue);
  const other = (next, label) =>
    make("button", { disabled: !next, click: () => page.show({ dialogue: next.id, turn: "" }) }, label);
  const buttons = [other(flow.dialogues[number - 1], "‹ Previous"), " ", other(flow.dialogues[number + 1], "Next ›")];
  const rest = "; dots on the map are steps that are too rare for it as it is set.";
  const keys = [". Step with ", make("kbd", "←"), " ", make("kbd", "→"), rest];
  return [
    backBar(page, make("span", buttons)),
    title(id),
    make("p.soft", setMark(flow, id), ` ${counted(dialogue.states.length, "turn")}`, keys),
    make("ol.turns", dialogue.states.map((state, index) => turnRow(page, dialogue, index, turn))),
  ];
}

function turnRow(page, dialogue, index, turn) {
  const { flow } = page;
  const state = flow.states[dialogue.states[index]];
  const name = dialogue.names?.[index];
  const speaker = name ? `${isolated(name)} (${state.role})` : state.role;
  const hidden = page.picture.nodes.has(dialogue.states[index]) ? "" : " (not on the map)";
  const button = make(
    `button.turn.${roleClass(flow, state.role)}`,
    { "data-turn": index + 1, click: () => page.show({ turn: String(index + 1) }) },
    make("span.said", flow.texts[dialogue.texts[index]]),
    make("span.who", `${index + 1} · ${speaker} · ${isolated(state.name)}${hidden}`),
  );
  if (index + 1 === turn) button.setAttribute("aria-current", "step");
  return make("li", button);
}
