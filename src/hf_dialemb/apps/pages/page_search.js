"use strict";
// The search: states by name, words and id, utterances by what is said, dialogues by id.

const MOST_FOUND = 10; // of each kind

// Everything that can be found: its kind, its text, what is looked in, and the view that it opens.
function searchable(flow) {
  const entry = (kind, text, view, words = text) => ({ kind, text, view, words: words.toLowerCase() });
  const states = flow.states.map(({ id, name, phrases }) =>
    entry("state", name, { state: id }, [name, id, ...phrases].join("\n")),
  );
  const texts = new Map(); // with where each is said first, or else which state it is of
  for (const { id, texts: said } of flow.dialogues) {
    said.forEach((text, index) => texts.has(text) || texts.set(text, { dialogue: id, turn: String(index + 1) }));
  }
  for (const { id, frequent } of flow.states) {
    for (const [text] of frequent) if (!texts.has(text)) texts.set(text, { state: id });
  }
  return [
    ...states,
    ...[...texts].map(([text, view]) => entry("utterance", flow.texts[text], view)),
    ...flow.dialogues.map(({ id }) => entry("dialogue", id, { dialogue: id, turn: "" })),
  ];
}

function lookUp(known, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = { state: 0, utterance: 0, dialogue: 0 };
  const fits = (entry) =>
    found[entry.kind] < MOST_FOUND && words.every((word) => entry.words.includes(word)) && ++found[entry.kind];
  return words.length ? known.filter(fits) : [];
}

function listenToSearch(page) {
  const input = document.getElementById("search");
  const list = document.getElementById("found");
  let known = null;
  let chosen = 0;
  const open = (isOpen) => {
    list.hidden = !isOpen;
    input.setAttribute("aria-expanded", String(isOpen));
  };
  const choose = (view) => {
    input.value = "";
    open(false);
    page.show({ tab: "map", ...view });
    page.focusPanel();
  };
  const select = (index) => {
    chosen = Math.min(Math.max(0, index), list.children.length - 1);
    [...list.children].forEach((row, place) => row.setAttribute("aria-selected", place === chosen));
    input.setAttribute("aria-activedescendant", `found-${chosen}`);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  };
  const rowOf = ({ kind, text, view }, index) => {
    const attributes = { role: "option", id: `found-${index}`, click: () => choose(view) };
    return make("li", attributes, make("span.kind", kind), make("span", { dir: "auto" }, text));
  };
  input.addEventListener("input", () => {
    known ??= searchable(page.flow);
    const rows = lookUp(known, input.value).map(rowOf);
    list.replaceChildren(...(rows.length ? rows : [make("li.none", "Nothing found.")]));
    open(input.value.trim() !== "");
    select(0);
  });
  const keys = {
    ArrowDown: () => select(chosen + 1),
    ArrowUp: () => select(chosen - 1),
    Enter: () => list.hidden || list.children[chosen].click(),
    Escape: () => input.blur(),
  };
  input.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // else the list is gone before the click
  input.addEventListener("blur", () => open(false));
}
