"use strict";
// The page of topics: a map of dialogues on a canvas, and a panel with topics and what is said. Text of dialogues gets
// into the page as text only, never as markup.
const page = (() => {
  const by = (id) => document.getElementById(id);
  const data = JSON.parse(by("data").textContent);
  const { topics, ids, texts, roles } = data;
  const [labels, places] = [Int32Array.from(data.labels), Int32Array.from(data.places)]; // faster to read than lists
  const count = ids.length;
  const canvas = by("map");
  const panel = by("panel");
  const pen = canvas.getContext("2d", { willReadFrequently: true }); // which keeps it where pixels are written
  const figures = new Intl.NumberFormat("en");
  const members = topics.map(() => []);
  labels.forEach((label, row) => members[label].push(row));
  for (const rows of members) rows.sort((one, other) => data.near[other] - data.near[one] || one - other);
  const numbers = new Map(topics.map((topic, number) => [topic.id, number]));
  const rowsById = new Map(ids.map((id, row) => [id, row]));
  const most = topics[0].size;
  // The x and y of points on the map, in units of which the map has 10,000 a side.
  const middles = members.map((rows) => [0, 1].map((axis) => {
    const sorted = rows.map((row) => places[2 * row + axis]).sort((one, other) => one - other);
    return sorted[sorted.length >> 1] ?? -1e9; // a topic may have no dialogue this time
  }));
  const GRID = 64;
  const cells = Array.from({ length: GRID * GRID }, () => []);
  const cellOf = (place) => Math.max(0, Math.min(GRID - 1, Math.floor((place / 10001) * GRID)));
  for (let row = 0; row < count; row++)
    cells[cellOf(places[2 * row + 1]) * GRID + cellOf(places[2 * row])].push(row);

  const self = { data, view: {}, hits: null, scale: 1, x: 0, y: 0, fitted: 1 };
  let colours = [];
  let ink = {};
  const shorts = [];
  const halves = [];
  let inks = [];
  let picture = null;
  let waiting = false;
  let lowered = null;
  let search = 0;

  function make(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "click") made.addEventListener("click", value);
      else if (key === "colour") made.style.setProperty("--colour", value);
      else if (key === "share") made.style.setProperty("--share", value);
      else made.setAttribute(key, value);
    }
    made.append(...children.flat().filter((child) => child !== null));
    return made;
  }
  const counted = (number, word) => `${figures.format(number)} ${word}${number === 1 ? "" : "s"}`;
  const dark = () => getComputedStyle(document.documentElement).colorScheme === "dark" ||
    (document.documentElement.dataset.theme === undefined && matchMedia("(prefers-color-scheme: dark)").matches);

  // Neighbours in size have hues far apart, and lightness goes round in three steps.
  function paint() {
    const light = dark() ? [72, 62, 82] : [58, 46, 68];
    colours = topics.map((_, number) => `oklch(${light[number % 3]}% 0.15 ${(number * 137.5 + 250) % 360})`);
    // A canvas does not know the page's variables: what they stand for is read from an element.
    ink = Object.fromEntries(["ink", "raised", "rule"].map((name) => {
      canvas.style.color = `var(--${name})`;
      return [name, getComputedStyle(canvas).color];
    }));
    inks = [...colours, ink.rule].map(packed);
    draw();
  }

  // The number that stands for a colour among the pixels of a picture, without its last eight bits.
  function packed(colour) {
    const spot = document.createElement("canvas").getContext("2d");
    spot.fillStyle = colour;
    spot.fillRect(0, 0, 1, 1);
    const [red, green, blue] = spot.getImageData(0, 0, 1, 1).data;
    return (blue << 16) | (green << 8) | red;
  }

  // The pixels of a point: how far from its middle in a picture, and how much of each the point covers.
  function discOf(radius, wide) {
    const [offsets, covers] = [[], []];
    const reach = Math.ceil(radius);
    for (let down = -reach; down <= reach; down++)
      for (let along = -reach; along <= reach; along++) {
        const cover = Math.min(1, radius + 0.5 - Math.hypot(along, down));
        if (cover <= 0.1) continue;
        offsets.push(down * wide + along);
        covers.push(Math.round(255 * cover));
      }
    return [reach, Int32Array.from(offsets), Int32Array.from(covers)];
  }

  function draw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      drawNow();
    });
  }

  function drawNow() {
    const ratio = Math.min(2, devicePixelRatio); // more than a phone draws in time
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const near = self.scale / self.fitted;
    const radius = Math.round(2 * ratio * Math.min(7, (count > 30_000 ? 1 : count > 3000 ? 2 : count > 500 ? 3 : 5) * near ** 0.25)) / 2;
    const topic = numbers.get(self.view.topic);
    const chosen = (row) => (self.hits ? self.hits.has(row) : labels[row] === topic);
    const dimmed = self.hits !== null || topic !== undefined;
    const [wide, high] = [canvas.width, canvas.height];
    if (picture?.width !== wide || picture.height !== high) picture = pen.createImageData(wide, high);
    const pixels = new Uint32Array(picture.data.buffer).fill(0);
    const [reach, offsets, covers] = discOf(radius, wide);
    // Thousands of points are fastest as pixels.
    for (const front of dimmed ? [false, true] : [true]) {
      for (let row = 0; row < count; row++) {
        if (dimmed && chosen(row) !== front) continue;
        const x = Math.round((places[2 * row] * self.scale + self.x) * ratio);
        const y = Math.round((places[2 * row + 1] * self.scale + self.y) * ratio);
        if (x < reach || y < reach || x >= wide - reach || y >= high - reach) continue;
        const colour = inks[front ? labels[row] : topics.length];
        const middle = y * wide + x;
        for (let spot = 0; spot < offsets.length; spot++) {
          const place = middle + offsets[spot];
          if (covers[spot] === 255 || pixels[place] === 0) pixels[place] = (covers[spot] << 24) | colour;
        }
      }
    }
    pen.putImageData(picture, 0, 0);
    drawNames(ratio, width, height, topic, pixels);
    drawRing();
  }

  // Each name stands where it hides the fewest points, near the middle of its own, whose colour underlines it.
  function drawNames(ratio, width, height, topic, pixels) {
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = `600 13px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    pen.lineWidth = 4;
    pen.strokeStyle = ink.raised;
    const taken = [];
    const others = [...topics.keys()].filter((number) => number !== topic);
    const order = topic === undefined ? others : [topic, ...others];
    for (const number of order) {
      const name = (shorts[number] ??= short(topics[number].name, width < 500 ? 12 : 26));
      const half = (halves[number] ??= pen.measureText(name).width / 2 + 4);
      const [centre, middle] = [middles[number][0] * self.scale + self.x, middles[number][1] * self.scale + self.y];
      const beside = (along) => Math.max(half, Math.min(width - half, centre + along));
      if (middle < 0 || middle > height || Math.abs(beside(0) - centre) > half) continue;
      const hidden = ([x, y]) => {
        let [own, strange] = [0, 0];
        for (let down = -8; down < 10; down += 4)
          for (let along = -half; along < half; along += 4) {
            const pixel = pixels[Math.round((y + down) * ratio) * canvas.width + Math.round((x + along) * ratio)];
            if (pixel) (pixel & 0xffffff) === (inks[number] & 0xffffff) ? own++ : strange++;
          }
        // On a phone a name that lies on another topic seems to be that one's.
        if (width < 500 && number !== topic && strange > 4) return Infinity;
        return own + strange + (Math.abs(y - middle) + Math.abs(x - beside(0)) / 4) / 20;
      };
      const free = ([x, y]) => y > 9 && y < height - 11 && !taken.some((box) => Math.abs(box[0] - x) < box[2] + half && Math.abs(box[1] - y) < 20);
      const ways = [0, 20, -20, 40, -40, 60, -60]
        .flatMap((down) => [0, 0.9 * half, -0.9 * half].map((along) => [beside(along), middle + down]))
        .filter(free);
      if (!ways.length) continue;
      const costs = ways.map(hidden);
      const least = Math.min(...costs);
      if (least === Infinity) continue;
      const [x, y] = ways[costs.indexOf(least)];
      taken.push([x, y, half]);
      pen.strokeText(name, x, y);
      pen.fillStyle = colours[number];
      pen.fillRect(x - half + 4, y + 8, 2 * half - 8, 2);
      pen.fillStyle = ink.ink;
      pen.fillText(name, x, y);
    }
  }

  // The first phrases of a name, as many as are short; a phrase is never cut.
  function short(name, most = 26) {
    const parts = name.split(", ");
    let found = parts[0];
    for (const part of parts.slice(1)) {
      if (found.length + part.length > most) break;
      found += `, ${part}`;
    }
    return found;
  }

  function drawRing() {
    const row = self.pointed ?? rowsById.get(self.view.dialogue);
    by("ring").hidden = row === undefined;
    if (row === undefined) return;
    by("ring").style.left = `${places[2 * row] * self.scale + self.x}px`;
    by("ring").style.top = `${places[2 * row + 1] * self.scale + self.y}px`;
  }

  function fit() {
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const sides = [0, 1].map((axis) => {
      let [least, greatest] = [Infinity, -Infinity];
      for (let place = axis; place < places.length; place += 2) {
        least = Math.min(least, places[place]);
        greatest = Math.max(greatest, places[place]);
      }
      return [least, Math.max(1, greatest - least)];
    });
    self.scale = self.fitted = Math.min((width - 60) / sides[0][1], (height - 60) / sides[1][1]);
    self.x = (width - sides[0][1] * self.scale) / 2 - sides[0][0] * self.scale;
    self.y = (height - sides[1][1] * self.scale) / 2 - sides[1][0] * self.scale;
    draw();
  }

  function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const scale = Math.max(self.fitted / 2, Math.min(self.fitted * 60, self.scale * factor));
    self.x = x - ((x - self.x) * scale) / self.scale;
    self.y = y - ((y - self.y) * scale) / self.scale;
    self.scale = scale;
    draw();
  }

  function nearest(x, y) {
    const [left, top, reach] = [(x - self.x) / self.scale, (y - self.y) / self.scale, 12 / self.scale];
    let [best, least] = [undefined, reach * reach];
    for (let down = cellOf(top - reach); down <= cellOf(top + reach); down++)
      for (let along = cellOf(left - reach); along <= cellOf(left + reach); along++)
        for (const row of cells[down * GRID + along]) {
          const far = (places[2 * row] - left) ** 2 + (places[2 * row + 1] - top) ** 2;
          if (far < least) [best, least] = [row, far];
        }
    return best;
  }

  const opening = (row) => texts[row].length ? texts[row].slice(0, 2).map((turn) => turn[1]).join(" / ").slice(0, 200) : "";

  function hover(x, y) {
    const row = nearest(x, y);
    if (row === self.pointed) return;
    self.pointed = row;
    drawRing();
    const tip = by("tip");
    tip.hidden = row === undefined;
    if (row === undefined) return;
    tip.replaceChildren(make("b", { dir: "auto" }, topics[labels[row]].name), make("bdi", {}, opening(row) || ids[row]));
    const space = canvas.clientWidth;
    tip.style.left = x < space / 2 ? `${x + 14}px` : "auto";
    tip.style.right = x < space / 2 ? "auto" : `${space - x + 14}px`;
    tip.style.top = `${Math.min(y + 10, canvas.clientHeight - 90)}px`;
  }

  function listenToMap() {
    const pointers = new Map();
    let moved = 0;
    const at = (event) => [event.offsetX, event.offsetY];
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, at(event));
      moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      const [x, y] = at(event);
      if (!before) return hover(x, y);
      moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
      if (moved > 4) canvas.classList.add("dragged");
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      if (other) {
        const reach = (one) => Math.hypot(one[0] - other[0], one[1] - other[1]) || 1;
        zoom(reach([x, y]) / reach(before), other[0], other[1]);
      } else {
        self.x += x - before[0];
        self.y += y - before[1];
        draw();
      }
      pointers.set(event.pointerId, [x, y]);
    });
    const end = (event) => {
      const was = pointers.delete(event.pointerId);
      canvas.classList.remove("dragged");
      if (event.type !== "pointerup" || !was || moved > 4) return;
      const row = nearest(...at(event));
      if (row !== undefined) show({ topic: topics[labels[row]].id, dialogue: ids[row] });
      else if (self.view.topic || self.view.dialogue) show({});
    };
    for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, end);
    canvas.addEventListener("pointerleave", () => hover(-1e6, -1e6));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoom(Math.exp(-Math.max(-300, Math.min(300, event.deltaY)) / 400), ...at(event));
    }, { passive: false });
    by("closer").addEventListener("click", () => zoom(1.5));
    by("farther").addEventListener("click", () => zoom(1 / 1.5));
    by("fit").addEventListener("click", fit);
    new ResizeObserver(() => (self.sized ? draw() : ((self.sized = true), fit()))).observe(canvas);
  }

  // A list of which so many are shown, and more on demand.
  function listOf(rows, item, shown = 30) {
    const list = make("ul", {}, rows.slice(0, shown).map((row) => make("li", {}, item(row))));
    if (rows.length <= shown) return [list];
    let until = shown;
    const more = make("button", { type: "button", class: "more", click: () => {
      list.append(...rows.slice(until, until + 100).map((row) => make("li", {}, item(row))));
      until += 100;
      if (until >= rows.length) more.remove();
      else more.textContent = label();
    } });
    const label = () => `Show more of ${figures.format(rows.length)}`;
    more.textContent = label();
    return [list, more];
  }

  const flowOf = (topic, told) => (topic.flow ? [make("a", { class: "flow", href: `flows/${topic.id}/index.html` }, told)] : []);

  const topicRow = (number) => [topicButton(number), ...flowOf(topics[number], "How these dialogues go →")];

  function topicButton(number) {
    const topic = topics[number];
    return make("button", { type: "button", class: "topic", share: `${(100 * topic.size) / most}%`, click: () => show({ topic: topic.id }) },
      make("span", { class: "dot", colour: colours[number] }), make("b", {}, topic.name),
      make("span", { class: "figure" }, `${figures.format(topic.size)} · ${Math.round((100 * topic.size) / count)} %`),
      make("span", { class: "soft" }, topic.phrases.join(" · ")));
  }

  function dialogueButton(row) {
    const said = self.hits ? self.hits.get(row) : opening(row);
    const facts = [ids[row], data.times[row] ? data.times[row].replace("T", " ") : ""].filter((fact) => fact);
    return make("button", { type: "button", class: "hit", click: () => show({ ...self.view, dialogue: ids[row] }) },
      make("span", { class: "dot", colour: colours[labels[row]] }), make("span", { class: "said" }, said || "(not on this page)"),
      make("span", { class: "soft" }, facts.join(" · ")));
  }

  function curve(counts, colour) {
    if (!counts.length) return [];
    const name = (kind, attributes) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      return made;
    };
    const drawn = name("svg", { class: "over", viewBox: "0 0 400 80", preserveAspectRatio: "none" });
    if (colour) drawn.style.setProperty("--colour", colour);
    const top = Math.max(1, ...counts);
    const wide = 400 / counts.length;
    counts.forEach((number, place) => {
      const bar = name("rect", { x: place * wide + 0.1 * wide, width: 0.8 * wide, y: 80 - (76 * number) / top, height: (76 * number) / top });
      bar.append(name("title", {}));
      bar.firstChild.textContent = `${data.periods[place].replace("T", " ")}: ${counted(number, "dialogue")}`;
      drawn.append(bar);
    });
    const [first, last] = [data.periods[0], data.periods.at(-1)].map((begins) => begins.replace("T", " "));
    return [make("h3", {}, `Over time, by ${data.unit}`), drawn, make("p", { class: "soft bar" }, make("span", {}, first), make("span", {}, `at most ${figures.format(top)}`), make("span", {}, last))];
  }

  // How sure a topic is, and what to do about it.
  const ADVICE = {
    solid: "It comes back in nearly every sample of the dialogues.",
    fair: "Most of it comes back in other samples: read a few of its dialogues before you count it.",
    shaky: "It falls apart in other samples: read it before you count it, or try fewer topics.",
  };
  const sureness = (topic) => (topic.stability in ADVICE ? [make("p", { class: "soft sure" }, make("b", {}, topic.stability), `. ${ADVICE[topic.stability]}`)] : []);

  const changes = changesOf(data, make, () => render());
  const tables = tablesOf(data, make, figures, (number) => make("button", { type: "button", class: "link", click: () => show({ topic: topics[number].id }) }, topics[number].name));

  const back = (view, told) => make("button", { type: "button", class: "button", style: "width: auto", click: () => show(view) }, told);

  function overview() {
    const all = data.periods.map((_, place) => topics.reduce((sum, topic) => sum + topic.periods[place], 0));
    const list = self.view.list ?? "";
    const way = (name, told) => make("button", { type: "button", class: "button", "aria-pressed": list === name, click: () => show({ list: name }) }, told);
    const shown = { ends: tables.ends, comparison: tables.comparisons }[list];
    return [make("h2", {}, counted(topics.filter((topic) => topic.id !== "none").length, "topic")), make("p", { class: "soft" }, "Each point is a dialogue; near ones are alike. Choose a topic or a point."),
      make("div", { class: "ways", role: "group", "aria-label": "What is shown of topics" }, way("", "Largest first"), way("ends", "How they end"),
        ...(data.comparisons.length ? [way("comparison", "Comparison")] : [])),
      ...(shown ? shown() : [...listOf([...topics.keys()], topicRow, 60), ...curve(all)])];
  }

  function topicPanel(number) {
    const topic = topics[number];
    const parts = [back({ list: self.view.list }, "← All topics"), make("h2", {}, topic.name),
      make("p", { class: "soft" }, `${counted(topic.size, "dialogue")}, ${Math.round((100 * topic.size) / count)} % of all${topic.least ? ` · new ones belong from a similarity of ${topic.least.toFixed(2)}` : ""}`), ...flowOf(topic, "How these dialogues go →")];
    if (topic.sentence) parts.splice(2, 0, make("p", { class: "sentence", dir: "auto" }, topic.sentence));
    parts.push(...sureness(topic), make("h3", {}, "Tells it from the others"), chips(topic.phrases));
    for (const [role, said] of topic.by_role)
      if (said.length) parts.push(make("h3", {}, `The ${role} says`), chips(said));
    parts.push(make("h3", {}, "How they end"), tables.endBar(topic.ends), tables.key(), ...changes.ofTopic(number));
    parts.push(...curve(topic.periods, colours[number]), make("h3", {}, "Dialogues, the most typical first"), ...listOf(members[number], dialogueButton));
    return parts;
  }

  const chips = (phrases) => make("div", { class: "chips" }, phrases.map((phrase) => make("span", { class: "chip" }, phrase)));

  function dialoguePanel(row) {
    const number = labels[row];
    const rows = self.hits ? [...self.hits.keys()] : members[number];
    const place = rows.indexOf(row);
    const step = (by) => {
      const button = make("button", { type: "button", click: () => show({ ...self.view, dialogue: ids[rows[place + by]] }) }, by < 0 ? "← Previous" : "Next →");
      button.disabled = place < 0 || rows[place + by] === undefined;
      return button;
    };
    const turns = texts[row].map(([role, said, name]) => make("li", { class: `role-${role}` },
      make("div", { class: "turn" }, make("span", { class: "who" }, name ? `${name} (${roles[role]})` : roles[role]), make("span", { class: "said" }, marked(said)))));
    return [back(self.hits ? {} : { list: self.view.list, topic: topics[number].id }, self.hits ? "← All found" : `← ${short(topics[number].name)}`),
      make("h2", {}, ids[row]), make("p", { class: "soft" }, `${topics[number].name} · cosine ${(data.near[row] / 1000).toFixed(2)}${data.times[row] ? ` · ${data.times[row].replace("T", " ")}` : ""}`),
      make("div", { class: "bar" }, step(-1), make("span", { class: "soft" }, `${figures.format(place + 1)} of ${figures.format(rows.length)}`), step(1)), ...changes.ofDialogue(row),
      turns.length ? make("ol", { class: "turns" }, turns) : make("p", { class: "hint" }, "What is said in it is not on this page, which would be too large.")];
  }

  function marked(said) {
    const wanted = self.query;
    const place = wanted && said.toLowerCase().indexOf(wanted);
    if (!wanted || place < 0) return [said];
    return [said.slice(0, place), make("mark", {}, said.slice(place, place + wanted.length)), said.slice(place + wanted.length)];
  }

  function found() {
    const rows = [...self.hits.keys()];
    const places = [...topics.keys()].filter((number) => [topics[number].name, ...topics[number].phrases].some((phrase) => phrase.toLowerCase().includes(self.query)));
    return [make("h2", {}, rows.length ? `${counted(rows.length, "dialogue")} found` : "Nothing found"), ...listOf(places, topicButton), ...listOf(rows, dialogueButton)];
  }

  function render() {
    const [topic, row] = [numbers.get(self.view.topic), rowsById.get(self.view.dialogue)];
    const parts = row !== undefined ? dialoguePanel(row) : self.hits ? found() : topic !== undefined ? topicPanel(topic) : overview();
    const held = panel.contains(document.activeElement) ? document.activeElement : null;
    panel.replaceChildren(...changes.note(), ...parts);
    if (held) (sameButton(held) ?? panel).focus({ preventScroll: true });
    draw();
  }

  // Who goes by keyboard stays at the button that was pressed, as long as it is there.
  function sameButton(held) {
    const told = (one) => [one.className, one.getAttribute("aria-label") ?? one.textContent].join();
    return [...panel.querySelectorAll("button:enabled")].find((one) => told(one) === told(held));
  }

  // What is shown, and its address.
  function show(view, again = false) {
    self.view = Object.fromEntries(Object.entries(view).filter(([, value]) => value));
    const words = new URLSearchParams(self.view).toString();
    history[again ? "replaceState" : "pushState"](null, "", `#${words}`);
    render();
    panel.scrollTop = 0;
    if (matchMedia("(max-width: 40rem)").matches && words) panel.scrollIntoView();
  }

  function follow() {
    self.view = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    render();
  }

  // A search goes on in slices, so that the map stays smooth.
  function find(query) {
    const wanted = query.trim().toLowerCase();
    const mine = ++search;
    self.query = wanted;
    if (!wanted) {
      self.hits = null;
      return show({}, true);
    }
    lowered ??= new Array(count);
    const hits = new Map();
    let row = 0;
    const go = () => {
      if (mine !== search) return;
      const until = performance.now() + 6;
      for (; row < count && performance.now() < until; row++) {
        lowered[row] ??= texts[row].map((turn) => turn[1].toLowerCase());
        const place = lowered[row].findIndex((said) => said.includes(wanted));
        if (place >= 0 || ids[row].toLowerCase() === wanted) hits.set(row, texts[row][Math.max(0, place)]?.[1] ?? "");
      }
      if (row < count) return requestAnimationFrame(go);
      self.hits = hits;
      show({}, true);
    };
    go();
  }

  by("search").addEventListener("input", (event) => find(event.target.value));
  by("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    paint();
    render();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (paint(), render()));
  addEventListener("popstate", follow);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== by("search")) {
      event.preventDefault();
      by("search").focus();
    }
    if (event.key === "Escape") {
      const { list, topic, dialogue } = self.view;
      show({ list, topic: dialogue && topic });
    }
  });
  Object.assign(self, { changes, show, find, drawNow, zoom, fit, hover });
  paint();
  listenToMap();
  follow();
  return self;
})();
