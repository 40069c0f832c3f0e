"use strict";
// Small parts that several views are made of. Text of dialogues gets into the page as text only, never as markup.

function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  if (name === "button") made.type = "button";
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "click") made.addEventListener("click", value);
    else if (key === "style")
      for (const [property, set] of Object.entries(value)) made.style.setProperty(property, set);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

function counted(number, word) {
  return `${figure(number)} ${word}${number === 1 ? "" : "s"}`;
}

function roleClass(flow, role) {
  return `role-${flow.roles.indexOf(role) % 5}`;
}

function roleTag(flow, role) {
  return make("span", { class: `role ${roleClass(flow, role)}` }, role);
}

function heading(text) {
  return make("h3", {}, text);
}

// A list of which the first are shown, and the rest on demand.
function listOf(items, row, { most = 12, kind = "ul", name = "" } = {}) {
  const list = make(kind, { class: name }, items.slice(0, most).map(row));
  if (items.length <= most) return [list];
  const button = make("button", { class: "more" }, `Show all ${figure(items.length)}`);
  button.addEventListener("click", () => {
    const added = items.slice(most).map(row);
    list.append(...added);
    button.remove();
    added[0].querySelector("button")?.focus();
  });
  return [list, button];
}

function dialogueChip(page, id, turn = "") {
  const open = () => page.show({ dialogue: id, turn });
  return make("button", { class: "chip", click: open }, make("bdi", {}, id), setMark(page.flow, id));
}

// Of which of the two compared sets a dialogue is, where that is known.
function setMark(flow, id) {
  const { set } = flow.dialogues[flow.byDialogue.get(id)];
  return set === undefined ? null : make("bdi", { class: `set ${set ? "gain" : "loss"}` }, flow.comparison.names[set]);
}

function idOf(flow, number) {
  if (number === flow.start) return "start";
  return number === flow.end ? "end" : flow.states[number].id;
}

function stateLink(page, number, label = nameOf(page.flow, number)) {
  const open = () => page.show({ state: idOf(page.flow, number) });
  return make(
    "button",
    { class: "link", title: nameOf(page.flow, number), click: open },
    cutText(label, 60), // no more than the style would cut, within a word
  );
}

function foldable(title, open, ...children) {
  return make("details", { open }, make("summary", {}, title), ...children);
}

// The states of a dialogue, with start and end around them: turn 1 is at place 1.
function pathOf(flow, dialogue) {
  return [flow.start, ...dialogue.states, flow.end];
}
