"use strict";
// The search: states by name, words and id, utterances by what is said, dialogues by id.

const FOUND = { state: 8, utterance: 12, dialogue: 8 };

function searchable(flow) {
  const where = new Map(); // of a text, where it is said first, or else which state it is of
  flow.states.forEach((state, number) => {
    for (const text of [...state.examples, ...state.frequent.map(([text]) => text)])
      if (!where.has(text)) where.set(text, { state: number });
  });
  for (const dialogue of flow.dialogues) {
    dialogue.texts.forEach((text, index) => {
      if (!where.get(text)?.dialogue)
        where.set(text, { state: dialogue.states[index], dialogue: dialogue.id, turn: index + 1 });
    });
  }
  return {
    where,
    texts: flow.texts.map((text) => text.toLowerCase()),
    states: flow.states.map((state) => [state.name, state.id, ...state.phrases].join("\n").toLowerCase()),
    dialogues: flow.dialogues.map((dialogue) => dialogue.id.toLowerCase()),
  };
}

function matches(lowered, words, most) {
  const found = [];
  for (let index = 0; index < lowered.length && found.length < most; index++) {
    if (words.every((word) => lowered[index].includes(word))) found.push(index);
  }
  return found;
}

function lookUp(flow, known, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const states = matches(known.states, words, FOUND.state).map((number) => ({
    kind: "state",
    text: flow.states[number].name,
    view: { state: flow.states[number].id },
  }));
  const dialogues = matches(known.dialogues, words, FOUND.dialogue).map((number) => ({
    kind: "dialogue",
    text: flow.dialogues[number].id,
    view: { dialogue: flow.dialogues[number].id, turn: "" },
  }));
  const texts = matches(known.texts, words, FOUND.utterance)
    .filter((text) => known.where.has(text))
    .map((text) => {
      const { state, dialogue, turn } = known.where.get(text);
      return {
        kind: "utterance",
        text: flow.texts[text],
        view: dialogue ? { dialogue, turn: String(turn) } : { state: flow.states[state].id },
      };
    });
  return [...states, ...texts, ...dialogues];
}

function listenToSearch(page) {
  const input = document.getElementById("search");
  const list = document.getElementById("found");
  let known = null;
  let results = [];
  let chosen = -1;
  let wait = 0;
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const choose = (index) => {
    if (!results[index]) return;
    input.value = "";
    close();
    page.show({ tab: "map", ...results[index].view });
    page.focusPanel();
  };
  const select = (index) => {
    chosen = results.length ? (index + results.length) % results.length : -1;
    [...list.children].forEach((row, place) => row.setAttribute("aria-selected", place === chosen));
    if (chosen < 0) return;
    input.setAttribute("aria-activedescendant", `found-${chosen}`);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  };
  const update = () => {
    known ??= searchable(page.flow);
    results = lookUp(page.flow, known, input.value);
    const row = ({ kind, text }, index) =>
      make(
        "li",
        { role: "option", id: `found-${index}`, click: () => choose(index) },
        make("span", { class: "kind" }, kind),
        make("span", { dir: "auto" }, cutText(text, 160)),
      );
    list.replaceChildren(...(results.length ? results.map(row) : [make("li", { class: "none" }, "Nothing found.")]));
    list.hidden = !input.value.trim();
    input.setAttribute("aria-expanded", String(!list.hidden));
    select(0);
  };
  input.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(update, 60);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") select(chosen + (event.key === "ArrowDown" ? 1 : -1));
    else if (event.key === "Enter") (update(), choose(Math.max(0, chosen)));
    else if (event.key === "Escape") ((input.value = ""), close(), input.blur());
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // else the list is gone before the click
  input.addEventListener("blur", close);
}

function cutText(text, most) {
  const letters = [...text];
  return letters.length > most ? `${whole(text, letters.slice(0, most).join(""))}…` : text;
}
