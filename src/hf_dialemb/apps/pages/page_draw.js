"use strict";
// The graph as a picture: states, transitions, what is lit up, and how the picture is moved.

const SVG = "http://www.w3.org/2000/svg";
const WIDE = 196;
const LINE = 18;
const HEAD = 9;
const ROWS = [7, 5, 4]; // so many states a row has at most: what suits the window is taken
const FEW = 60; // states for which all of these are tried
const CLOSE = 0.45; // from this scale on percentages can be read
const WORDS = Intl.Segmenter && new Intl.Segmenter(undefined, { granularity: "word" });
const measure = document.createElement("canvas").getContext("2d");

function element(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function percent(share) {
  if (share > 0 && share < 0.005) return "< 1 %";
  return `${Math.round(100 * share)} %`;
}

function textWidth(text) {
  measure.font = "600 15px system-ui, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
  return measure.measureText(text).width;
}

function cut(text, width) {
  if (textWidth(text) <= width) return text;
  const letters = [...text];
  let low = 0;
  let high = letters.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(letters.slice(0, middle).join("") + "…") <= width) low = middle;
    else high = middle - 1;
  }
  return whole(text, letters.slice(0, low).join("")) + "…";
}

// What was cut off a text, without the word that the cut goes through, unless that is all there is.
function whole(text, kept) {
  const found = /\s/.test(text[kept.length]) ? kept : kept.replace(/\s+\S*$/, "");
  return found.trimEnd();
}

// What of a text without blanks fits into a line: whole words, if it has some, with their marks.
function beginning(text, width) {
  let end = 0;
  for (const { index, isWordLike } of WORDS?.segment(text) ?? []) {
    if (isWordLike && textWidth(text.slice(0, index)) <= width) end = index;
  }
  return end ? text.slice(0, end) : cut(text, width).slice(0, -1);
}

// A name in at most two lines.
function wrapped(text, width) {
  const words = text.split(/\s+/);
  let first = words.shift();
  if (textWidth(first) > width) {
    // one long word, or a script without blanks, goes on in the second line
    const begun = beginning(first, width);
    return [begun, cut(text.slice(begun.length), width)];
  }
  while (words.length && textWidth(`${first} ${words[0]}`) <= width) first += ` ${words.shift()}`;
  return [cut(first, width), ...(words.length ? [cut(words.join(" "), width)] : [])];
}

function boxOf(flow, number) {
  if (number >= flow.start) return { number, width: 104, height: 36, lines: [nameOf(flow, number)] };
  const lines = wrapped(nameOf(flow, number), WIDE - 22);
  return { number, width: WIDE, height: 32 + LINE * lines.length, lines };
}

function curve({ points, back, flat }, width) {
  const last = points.at(-1);
  const sign = back || flat ? 1 : -1;
  const half = 4 + 0.55 * width;
  const long = HEAD + 0.5 * width;
  const ends = [...points.slice(0, -1), [last[0], last[1] + sign * (long - 1)]];
  let path = `M${ends[0]}`;
  for (let index = 1; index < ends.length; index++) {
    const [from, to] = [ends[index - 1], ends[index]];
    if (index % 2 === 0) path += `L${to}`;
    else path += bend(from, to);
  }
  return { path, head: `M${last}l${-half},${sign * long}h${2 * half}z`, labels: labelPlaces(points) };
}

function bend(from, to) {
  const middle = (from[1] + to[1]) / 2;
  if (from[1] !== to[1]) return `C${from[0]},${middle} ${to[0]},${middle} ${to}`;
  return `C${from[0]},${from[1] + 36} ${to[0]},${to[1] + 36} ${to}`;
}

// Where a percentage may stand: on the first bend, then on the last.
function labelPlaces(points) {
  const first = points.slice(0, 2);
  const last = points.slice(-2);
  if (first[0][1] === first[1][1]) return [[(first[0][0] + first[1][0]) / 2, first[0][1] + 27]];
  return [
    [first, 0.5],
    [first, 0.35],
    [first, 0.65],
    [last, 0.5],
    [last, 0.7],
  ].map(([part, share]) => onBend(part, share));
}

// A point of the curve that `bend` draws.
function onBend([[x1, y1], [x2, y2]], share) {
  const rest = 1 - share;
  const middle = (y1 + y2) / 2;
  const near = rest ** 3 + 3 * rest ** 2 * share;
  const far = share ** 3 + 3 * rest * share ** 2;
  return [near * x1 + far * x2, rest ** 3 * y1 + 3 * rest * share * middle + share ** 3 * y2];
}

class Picture {
  constructor(svg, flow, chosen) {
    Object.assign(this, { svg, flow, chosen, nodes: new Map(), edges: new Map(), scale: 1, x: 0, y: 0 });
    this.world = element("svg");
    this.layers = Object.fromEntries(
      ["edges", "steps", "nodes", "labels"].map((name) => [name, element("g", { class: name })]),
    );
    this.world.append(...Object.values(this.layers));
    svg.append(this.world);
    this.listen();
  }

  // Draws what is left of the graph; states that stay keep their element, so that they are seen to move.
  draw(graph) {
    const boxes = [this.flow.start, ...graph.states, this.flow.end].map((number) => boxOf(this.flow, number));
    this.graph = graph;
    const tried = (boxes.length > FEW ? ROWS.slice(0, 1) : ROWS).map((widest) =>
      layOut(boxes, graph.edges, this.flow.start, this.flow.end, widest),
    );
    this.layout = tried.reduce((best, one) => (this.wholeScale(one) > this.wholeScale(best) ? one : best));
    const gone = new Set(this.nodes.keys());
    for (const box of boxes) {
      gone.delete(box.number);
      this.drawNode(box);
    }
    for (const number of gone) {
      this.nodes.get(number).remove();
      this.nodes.delete(number);
    }
    this.drawEdges();
  }

  drawNode(box) {
    let node = this.nodes.get(box.number);
    if (!node) {
      node = box.number >= this.flow.start ? this.terminal(box) : this.state(box);
      this.nodes.set(box.number, node);
      this.layers.nodes.append(node);
    }
    const { x, y } = this.layout.places.get(box.number);
    node.style.transform = `translate(${x}px, ${y}px)`;
  }

  terminal(box) {
    const kind = box.number === this.flow.start ? "start" : "end";
    const [w, h] = [box.width / 2, box.height / 2];
    const node = element("g", {
      class: `node terminal ${kind}`,
      "data-number": box.number,
      role: "button",
      tabindex: 0,
    });
    node.setAttribute("aria-label", `${box.lines[0]} of all dialogues`);
    if (kind === "end")
      node.append(
        element("rect", { class: "ring", x: -w - 4, y: -h - 4, width: 2 * w + 8, height: 2 * h + 8, rx: h + 4 }),
      );
    node.append(element("rect", { class: "box", x: -w, y: -h, width: 2 * w, height: 2 * h, rx: h }));
    node.append(element("text", { class: "name", y: 5 }, `${kind === "start" ? "▶" : "■"} ${box.lines[0]}`));
    return node;
  }

  state(box) {
    const state = this.flow.states[box.number];
    const [w, h] = [box.width / 2, box.height / 2];
    const share = state.through / this.flow.counts.dialogues;
    const role = this.flow.roles.indexOf(state.role);
    const node = element("g", {
      class: `node state role-${role % 5}`,
      "data-number": box.number,
      role: "button",
      tabindex: 0,
    });
    node.setAttribute("aria-label", `${state.name}, ${state.role}, in ${percent(share)} of dialogues`);
    node.append(element("title", {}, `${state.name} (${state.id})`));
    const round = role === 0 ? 17 : role === 1 ? 3 : 9;
    const box_ = element("rect", { class: "box", x: -w, y: -h, width: 2 * w, height: 2 * h, rx: round });
    box_.style.strokeWidth = 1 + (4 * state.size) / this.flow.most;
    node.append(box_);
    box.lines.forEach((line, index) =>
      node.append(element("text", { class: "name", y: -h + 21 + LINE * index }, line)),
    );
    node.append(element("text", { class: "share", y: h - 8 }, `in ${percent(share)} of dialogues`));
    return node;
  }

  drawEdges() {
    this.edges.clear();
    const most = this.graph.edges.reduce((largest, edge) => Math.max(largest, edge.count), 1);
    const drawn = [...this.graph.edges].sort((one, other) => one.count - other.count); // heavy ones lie on top
    const parts = drawn.map((edge) => {
      const made =
        edge.source === edge.target ? this.loop(edge) : this.transition(edge, (edge.count / most) ** 0.7, most);
      this.edges.set(edge.key, made);
      return made;
    });
    this.layers.edges.replaceChildren(...parts.map((part) => part.line));
    this.layers.labels.replaceChildren(...parts.map((part) => part.label));
    this.placeLabels(drawn);
  }

  // Heavy transitions are thick and dark; where all are seen a few times, none is.
  transition(edge, weight, most) {
    const width = 1.5 + weight * Math.min(8, Math.log2(most + 1) + 1);
    const route = this.layout.routes.get(edge.key);
    const { path, head, labels } = curve(route, width);
    const line = element(
      "g",
      { class: `edge${route.back ? " back" : ""}`, "data-key": edge.key },
      element("path", { class: "hit", d: path }),
      element("path", { class: "line", d: path, "stroke-width": width.toFixed(2) }),
      element("path", { class: "head", d: head }),
    );
    line.style.setProperty("--weight", (0.75 + 0.25 * weight).toFixed(2));
    const text = element("text", { class: "percent", "data-key": edge.key }, percent(edge.share));
    return { line, label: text, edge, places: labels };
  }

  // A state that follows itself has a mark at its corner.
  loop(edge) {
    const cell = this.layout.places.get(edge.source);
    const x = cell.x + cell.width / 2 - 6;
    const y = cell.y - cell.height / 2;
    const line = element(
      "g",
      { class: "edge loop", "data-key": edge.key },
      element("rect", { class: "badge", x: x - 24, y: y - 10, width: 48, height: 18, rx: 9 }),
    );
    return {
      line,
      label: element("text", { class: "again", x, y: y + 4, "data-key": edge.key }, `↻ ${percent(edge.share)}`),
      edge,
    };
  }

  describe(edge) {
    return `${stepName(this.flow, edge)}: ${percent(edge.share)} of the time, ${figure(edge.count)} times`;
  }

  // Percentages stand where they cover no other; where there is no such place, they show once their transition is lit.
  placeLabels(drawn) {
    const taken = new Map();
    const free = ([x, y]) =>
      [-1, 0, 1].every((step) =>
        (taken.get(Math.round(x / 40) + step) || []).every(
          (other) => Math.abs(other[0] - x) >= 38 || Math.abs(other[1] - y) >= 15,
        ),
      );
    for (const edge of [...drawn].reverse()) {
      const { label, places } = this.edges.get(edge.key);
      if (!places) continue;
      const found = places.find(free);
      const at = found || places[0];
      const column = Math.round(at[0] / 40);
      label.classList.toggle("covered", !found);
      label.setAttribute("x", at[0].toFixed(1));
      label.setAttribute("y", (at[1] + 4).toFixed(1));
      if (found) taken.set(column, [...(taken.get(column) || []), at]);
    }
  }

  // Lights some states and transitions up; all others are dimmed. Nothing given: all are as they were.
  light(numbers, keys) {
    const any = Boolean(numbers);
    this.svg.classList.toggle("lit", any);
    for (const [number, node] of this.nodes) node.classList.toggle("on", any && numbers.has(number));
    for (const [key, { line, label }] of this.edges) {
      const on = any && keys.has(key);
      line.classList.toggle("on", on);
      label.classList.toggle("on", on);
    }
  }

  mark(name, numbers, keys = new Set()) {
    for (const [number, node] of this.nodes) node.classList.toggle(name, numbers.has(number));
    for (const [key, { line }] of this.edges) line.classList.toggle(name, keys.has(key));
  }

  around(number) {
    const touching = this.graph.edges.filter((edge) => edge.source === number || edge.target === number);
    return [
      new Set([number, ...touching.flatMap((edge) => [edge.source, edge.target])]),
      new Set(touching.map((edge) => edge.key)),
    ];
  }

  // The way of one dialogue: transitions that are shown are lit, others are dotted between states that are shown.
  way(numbers, current) {
    this.layers.steps.replaceChildren();
    for (const node of this.nodes.values()) node.querySelector(".turns")?.remove();
    if (!numbers) return this.mark("current", new Set());
    const shown = numbers.map((number, place) => ({ number, place })).filter(({ number }) => this.nodes.has(number));
    const keys = new Set();
    const dashes = new Map();
    shown.slice(1).forEach(({ number, place }, index) => {
      const before = shown[index];
      const key = keyOf(this.flow, before.number, number);
      if (this.edges.has(key) && place === before.place + 1) keys.add(key);
      else if (before.number !== number) dashes.set(key, [before.number, number]);
    });
    for (const pair of dashes.values()) this.layers.steps.append(this.dash(pair));
    this.number(shown);
    this.light(new Set(shown.map(({ number }) => number)), keys);
    this.mark("current", new Set([current]));
  }

  dash(pair) {
    const [from, to] = pair.map((number) => this.layout.places.get(number));
    const aside = 40 * Math.sign(to.y - from.y || 1);
    const x = (from.x + to.x) / 2 + aside;
    const y = (from.y + to.y) / 2;
    return element("path", { class: "dash", d: `M${from.x},${from.y}Q${x},${y} ${to.x},${to.y}` });
  }

  number(shown) {
    const turns = new Map();
    for (const { number, place } of shown) turns.set(number, [...(turns.get(number) || []), place]);
    for (const [number, places] of turns) {
      if (number >= this.flow.start) continue;
      const cell = this.layout.places.get(number);
      const text = places.slice(0, 6).join(", ") + (places.length > 6 ? ", …" : "");
      this.nodes
        .get(number)
        .append(element("text", { class: "turns", x: -cell.width / 2 + 2, y: -cell.height / 2 - 5 }, text));
    }
  }

  colour(classOf) {
    for (const { line, label, edge } of this.edges.values()) {
      for (const kind of ["gain", "loss", "same"]) {
        line.classList.toggle(kind, classOf?.(edge).kind === kind);
        label.classList.toggle(kind, classOf?.(edge).kind === kind);
      }
      if (edge.source !== edge.target) label.textContent = classOf ? classOf(edge).text : percent(edge.share);
    }
  }
}
