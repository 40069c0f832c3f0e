"use strict";
// Small parts that several views are made of. Text of dialogues gets into the page as text only, never as markup.

// `make("p.soft", {title: "…"}, "text", element)`: attributes may be left out, and so may children that are false.
function make(kind, ...children) {
  const [name, ...classes] = kind.split(".");
  const made = document.createElement(name);
  if (classes.length) made.className = classes.join(" ");
  if (name === "button") made.type = "button";
  const attributes = children[0]?.constructor === Object ? children.shift() : {};
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "click") made.addEventListener("click", value);
    else if (typeof value === "boolean") made.toggleAttribute(key, value);
    else made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

function counted(number, word) {
  return `${figure(number)} ${word}${number === 1 ? "" : "s"}`;
}

function roleClass(flow, role) {
  return role ? `role-${flow.roles.indexOf(role) % 5}` : "";
}

function roleTag(flow, role) {
  return make(`span.role.${roleClass(flow, role)}`, role);
}

// The heading that gets the focus when a panel opens.
function title(...children) {
  return make("h2", { tabindex: -1 }, ...children);
}

// A list of which the first are shown, and the rest on demand.
function listOf(kind, items, row, most) {
  const list = make(kind, items.slice(0, most).map(row));
  if (items.length <= most) return [list];
  const button = make("button.more", `Show all ${figure(items.length)}`);
  button.addEventListener("click", () => {
    const added = items.slice(most).map(row);
    list.append(...added);
    button.remove();
    (added[0].querySelector("button") ?? added[0]).focus();
  });
  return [list, button];
}

function dialogueChip(page, id, turn = "") {
  const open = () => page.show({ dialogue: id, turn });
  return make("button.chip", { click: open }, make("bdi", id), setMark(page.flow, id));
}

// Of which of the two compared sets a dialogue is, where that is known.
function setMark(flow, id) {
  const { set } = flow.byDialogue.get(id);
  return set === undefined ? null : make(`bdi.set.${set ? "gain" : "loss"}`, flow.comparison.names[set]);
}

function stateLink(page, number, label = nameOf(page.flow, number)) {
  const open = () => page.show({ tab: "map", state: page.flow.ids[number] });
  return make("button.link", { title: nameOf(page.flow, number), click: open }, label);
}

function foldable(name, open, ...children) {
  return make("details", { open }, make("summary", name), ...children);
}

// The states of a dialogue, with start and end around them: turn 1 is at place 1.
function pathOf(flow, dialogue) {
  return [flow.start, ...dialogue.states, flow.end];
}
