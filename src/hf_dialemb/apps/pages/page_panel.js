"use strict";
// What stands beside the map of a state, of a transition and of a dialogue.

function backBar(page, ...more) {
  return make(
    "div",
    { class: "bar" },
    make("button", { click: () => page.show(NOTHING), "aria-keyshortcuts": "Escape" }, "← Overview"),
    ...more,
  );
}

function terminalPanel(page, number) {
  const begins = number === page.flow.start;
  const end = begins ? "source" : "target";
  return [
    backBar(page),
    make("h2", { tabindex: -1 }, begins ? "How dialogues begin" : "How dialogues end"),
    ...steps(
      page,
      page.flow.edges.filter((edge) => edge[end] === number),
      begins ? "target" : "source",
    ),
  ];
}

function statePanel(page, number) {
  if (number >= page.flow.start) return terminalPanel(page, number);
  const { flow } = page;
  const state = flow.states[number];
  const through = dialoguesThrough(flow, number);
  const share = percent(state.through / flow.counts.dialogues);
  return [
    backBar(page),
    make("h2", { tabindex: -1 }, state.name),
    make(
      "p",
      { class: "soft" },
      roleTag(flow, state.role),
      ` ${state.id} · ${counted(state.size, "utterance")}, ${figure(state.distinct)} different` +
        ` · in ${figure(state.through)} of ${counted(flow.counts.dialogues, "dialogue")} (${share})`,
    ),
    hiddenNote(page, number),
    state.phrases.length > 0 &&
      make(
        "div",
        { class: "chips", "aria-label": "Typical words" },
        state.phrases.map((phrase) => make("span", { class: "chip" }, phrase)),
      ),
    heading("Typical utterances"),
    ...listOf(state.examples, (text) => make("li", {}, flow.texts[text]), { most: 4, name: "texts" }),
    heading("What comes next"),
    ...steps(
      page,
      flow.edges.filter((edge) => edge.source === number),
      "target",
    ),
    heading("What came before"),
    ...steps(
      page,
      flow.edges.filter((edge) => edge.target === number),
      "source",
    ),
    heading("Said most often"),
    ...listOf(state.frequent, ([text, times]) => frequentRow(flow, text, times), { most: 6, name: "texts counted" }),
    state.distinct > state.frequent.length &&
      make("p", { class: "hint" }, `and ${figure(state.distinct - state.frequent.length)} others`),
    heading(
      through.length === state.through
        ? "Dialogues"
        : `Dialogues: ${figure(through.length)} of ${figure(state.through)} are in this page`,
    ),
    ...listOf(through, ({ dialogue, place }) => make("li", {}, dialogueChip(page, dialogue.id, String(place))), {
      most: 24,
      name: "chips",
    }),
  ];
}

function frequentRow(flow, text, times) {
  return make("li", {}, make("span", {}, flow.texts[text]), make("span", { class: "times" }, `${figure(times)} ×`));
}

function hiddenNote(page, number) {
  if (page.graph.states.includes(number)) return null;
  const open = () => page.show({ nodes: 0, edges: 0 });
  return make(
    "p",
    { class: "note" },
    "Too rare for the map as it is set. ",
    make("button", { class: "button", click: open }, "Show all states"),
  );
}

// What leads to or from a state, with shares: of what follows a state, or of what precedes it.
function steps(page, edges, end) {
  const sum = edges.reduce((so, edge) => so + edge.count, 0);
  const shown = new Set(page.graph.edges.map((edge) => edge.key));
  const sorted = [...edges].sort((one, other) => other.count - one.count);
  const row = (edge) => {
    const share = edge.count / sum;
    const other = edge[end];
    const role = roleOf(page.flow, other);
    const pairs = make(
      "button",
      {
        class: "pairs",
        title: "Which utterances follow each other",
        click: () => page.show({ edge: edge.key }),
      },
      "pairs",
    );
    pairs.setAttribute(
      "aria-label",
      `Pairs of utterances, ${nameOf(page.flow, edge.source)} to ${nameOf(page.flow, edge.target)}`,
    );
    return make(
      "li",
      {
        class: `${role ? roleClass(page.flow, role) : ""}${shown.has(edge.key) ? "" : " hiddenStep"}`,
        style: { "--share": `${100 * share}%` },
      },
      stateLink(page, other),
      make("span", { class: "times" }, `${percent(share)} · ${figure(edge.count)}`),
      pairs,
    );
  };
  return listOf(sorted, row, { most: 8, name: "steps" });
}

function dialoguesThrough(flow, number) {
  const found = [];
  for (const dialogue of flow.dialogues) {
    const place = dialogue.states.indexOf(number);
    if (place >= 0) found.push({ dialogue, place: place + 1 });
  }
  return found;
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
  return [
    backBar(page),
    make("h2", { tabindex: -1 }, stateLink(page, edge.source), " → ", stateLink(page, edge.target)),
    make(
      "p",
      { class: "soft" },
      `${percent(edge.share)} of the time, ${figure(edge.count)} times` +
        (found < edge.count ? `; ${figure(found)} of them are in this page` : ""),
    ),
    comparedNote(page, key),
    heading(
      edge.source === flow.start ? "How they begin" : edge.target === flow.end ? "How they end" : "Pairs of utterances",
    ),
    ...listOf(pairs, (pair) => pairRow(page, edge, pair), { most: 25 }),
  ];
}

function comparedNote(page, key) {
  const found = page.differences?.get(key);
  if (!found) return null;
  const [one, other] = page.flow.comparison.names;
  return make(
    "p",
    {},
    `${isolated(one)}: ${shareIn(found, 0)} · ${isolated(other)}: ${shareIn(found, 1)} · p = ${printedChance(found)}`,
  );
}

function pairRow(page, edge, { said, found }) {
  const { flow } = page;
  const line = (number, text) =>
    text !== undefined && make("p", { class: roleClass(flow, roleOf(flow, number)) }, flow.texts[text]);
  return make(
    "li",
    { class: "pair" },
    line(edge.source, said[0]),
    line(edge.target, said[1]),
    make(
      "div",
      { class: "chips" },
      found.length > 1 && make("span", { class: "soft" }, `${found.length} ×`),
      found.slice(0, 3).map(({ id, turn }) => dialogueChip(page, id, String(turn))),
    ),
  );
}

function dialoguePanel(page, id, turn) {
  const { flow } = page;
  const number = flow.byDialogue.get(id);
  const dialogue = flow.dialogues[number];
  const other = (step, label, keys) => {
    const next = flow.dialogues[number + step];
    return make(
      "button",
      {
        disabled: !next,
        "aria-label": label,
        "aria-keyshortcuts": keys,
        click: () => next && page.show({ dialogue: next.id, turn: "" }),
      },
      step < 0 ? "‹ Previous" : "Next ›",
    );
  };
  const row = (state, index) => turnRow(page, dialogue, index, turn);
  return [
    backBar(page, make("span", {}, other(-1, "Previous dialogue", "p"), " ", other(1, "Next dialogue", "n"))),
    make("h2", { tabindex: -1 }, id),
    make(
      "p",
      { class: "soft" },
      setMark(flow, id),
      dialogue.set === undefined ? "" : " · ",
      `${counted(dialogue.states.length, "turn")}. Step with `,
      make("kbd", {}, "←"),
      " ",
      make("kbd", {}, "→"),
      "; dots on the map are steps that are too rare for it as it is set.",
    ),
    make("ol", { class: "turns" }, dialogue.states.map(row)),
  ];
}

function turnRow(page, dialogue, index, turn) {
  const { flow } = page;
  const state = flow.states[dialogue.states[index]];
  const shown = page.picture.nodes.has(dialogue.states[index]);
  const name = dialogue.names?.[index];
  const speaker = name ? `${isolated(name)} (${state.role})` : state.role;
  const button = make(
    "button",
    {
      class: `turn ${roleClass(flow, state.role)}`,
      "data-turn": index + 1,
      click: () => page.show({ turn: String(index + 1) }),
    },
    make("span", { class: "said" }, flow.texts[dialogue.texts[index]]),
    make(
      "span",
      { class: "who" },
      `${index + 1} · ${speaker} · ${isolated(state.name)}${shown ? "" : " (not on the map)"}`,
    ),
  );
  if (index + 1 === turn) button.setAttribute("aria-current", "step");
  return make("li", {}, button);
}
