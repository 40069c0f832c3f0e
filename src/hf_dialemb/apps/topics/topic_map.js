"use strict";
// The map: each point is a dialogue. Names stand above the points of their topics.

const OFFSETS = [-18, 2, -38, 22, -58, 42]; // how far a name may be from the top of its points

// Where the name of a topic stands: in the middle of its points, above nearly all of them.
// A topic may have no dialogue this time.
function nameplace(rows, places) {
  const at = (axis, share) => {
    const sorted = rows.map((row) => places[2 * row + axis]).sort((one, other) => one - other);
    return sorted[Math.floor(share * sorted.length)] ?? -1e9;
  };
  return [at(0, 0.5), at(1, 0.05)];
}

// The first phrases of a name, as many as are short; a phrase is never cut.
function shortened(name, most = 26) {
  const [first, ...parts] = name.split(", ");
  let text = first;
  for (const part of parts) {
    if (text.length + part.length > most) break;
    text += `, ${part}`;
  }
  return text;
}

function isDark() {
  const root = document.documentElement;
  if (getComputedStyle(root).colorScheme === "dark") return true;
  return !root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches;
}

class TopicMap {
  constructor(page) {
    this.page = page;
    this.canvas = document.getElementById("map");
    this.pen = this.canvas.getContext("2d");
    this.places = Int32Array.from(page.data.places); // faster to read than a list
    this.nameplaces = page.members.map((rows) => nameplace(rows, this.places));
    Object.assign(this, { scale: 1, fitted: 1, x: 0, y: 0, colours: [], waiting: false });
    this.paint();
    this.listen();
  }

  placeOf(row) {
    return [this.places[2 * row], this.places[2 * row + 1]];
  }

  onScreen([x, y]) {
    return [x * this.scale + this.x, y * this.scale + this.y];
  }

  // Neighbouring numbers have hues far apart, and lightness goes round in three steps. A topic keeps
  // its number, and so its colour, in later runs.
  paint() {
    const light = isDark() ? [72, 62, 82] : [58, 46, 68];
    this.colours = this.page.data.topics.map(({ id }) => {
      const number = parseInt(id.slice("topic-".length)) - 1 || 0;
      return `oklch(${light[number % 3]}% 0.15 ${(number * 137.5 + 250) % 360})`;
    });
    // A canvas does not know the page's variables: what they stand for is read from an element.
    const read = (name) => {
      this.canvas.style.color = `var(--${name})`;
      return getComputedStyle(this.canvas).color;
    };
    this.ink = { ink: read("ink"), raised: read("raised"), rule: read("rule") };
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.drawNow();
    });
  }

  drawNow() {
    const { canvas, pen, page } = this;
    const ratio = Math.min(2, devicePixelRatio); // more than a phone draws in time
    canvas.width = Math.round(canvas.clientWidth * ratio); // which clears it too
    canvas.height = Math.round(canvas.clientHeight * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const topic = page.numbers.get(page.view.topic);
    if (page.hits) {
      this.drawAll(() => this.ink.rule);
      const ofTopic = (rows) => rows.filter((row) => page.hits.has(row));
      page.members.forEach((rows, number) => this.drawRows(ofTopic(rows), this.colours[number]));
    } else if (topic === undefined) this.drawAll((number) => this.colours[number]);
    else {
      this.drawAll(() => this.ink.rule);
      this.drawRows(page.members[topic], this.colours[topic]);
    }
    this.drawNames(topic);
    this.drawRing();
  }

  drawAll(colourOf) {
    this.page.members.forEach((rows, number) => this.drawRows(rows, colourOf(number)));
  }

  // Thousands of points are fastest as squares.
  drawRows(rows, colour) {
    const count = this.page.data.ids.length;
    const size = [[30_000, 1], [3000, 2], [500, 3], [0, 5]].find(([least]) => count >= least)[1];
    const radius = Math.min(7, size * (this.scale / this.fitted) ** 0.25);
    const { pen } = this;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    pen.fillStyle = colour;
    pen.beginPath();
    for (const row of rows) {
      const [x, y] = this.onScreen(this.placeOf(row));
      if (x < -radius || y < -radius || x > width + radius || y > height + radius) continue;
      if (radius < 3) {
        pen.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
        continue;
      }
      pen.moveTo(x + radius, y);
      pen.arc(x, y, radius, 0, 2 * Math.PI);
    }
    pen.fill();
  }

  // Each name stands near its topic, whose colour underlines it, and on no other name.
  drawNames(chosen) {
    const { pen } = this;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    Object.assign(pen, {
      font: "600 13px system-ui, sans-serif",
      textAlign: "center",
      textBaseline: "middle",
      lineJoin: "round",
      lineWidth: 4,
      strokeStyle: this.ink.raised,
    });
    const { topics } = this.page.data;
    const taken = [];
    const numbers = [...topics.keys()].filter((number) => number !== chosen);
    for (const number of chosen === undefined ? numbers : [chosen, ...numbers]) {
      const name = shortened(topics[number].name, width < 500 ? 12 : 26);
      const half = pen.measureText(name).width / 2 + 4;
      const [centre, top] = this.onScreen(this.nameplaces[number]);
      const x = Math.max(half, Math.min(width - half, centre));
      if (top < 0 || top > height || Math.abs(x - centre) > half) continue;
      const isFree = (y) => y > 9 && y < height - 11 && !taken.some((box) => {
        return Math.abs(box.x - x) < box.half + half && Math.abs(box.y - y) < 20;
      });
      const y = OFFSETS.map((offset) => top + offset).find(isFree);
      if (y === undefined) continue;
      taken.push({ x, y, half });
      pen.strokeText(name, x, y);
      pen.fillStyle = this.colours[number];
      pen.fillRect(x - half + 4, y + 8, 2 * half - 8, 2);
      pen.fillStyle = this.ink.ink;
      pen.fillText(name, x, y);
    }
  }

  drawRing() {
    const row = this.pointed ?? this.page.rowsById.get(this.page.view.dialogue);
    const ring = document.getElementById("ring");
    ring.hidden = row === undefined;
    if (ring.hidden) return;
    const [x, y] = this.onScreen(this.placeOf(row));
    Object.assign(ring.style, { left: `${x}px`, top: `${y}px` });
  }

  fit() {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    let [wide, high] = [1, 1]; // of the map, whose places begin at 0
    for (let place = 0; place < this.places.length; place += 2) {
      wide = Math.max(wide, this.places[place]);
      high = Math.max(high, this.places[place + 1]);
    }
    this.scale = this.fitted = Math.min((width - 60) / wide, (height - 60) / high);
    this.x = (width - wide * this.scale) / 2;
    this.y = (height - high * this.scale) / 2;
    this.draw();
  }

  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const scale = Math.max(this.fitted / 2, Math.min(this.fitted * 60, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.draw();
  }

  nearest(x, y) {
    const [left, top] = [(x - this.x) / this.scale, (y - this.y) / this.scale];
    let best;
    let least = (12 / this.scale) ** 2;
    for (let row = 0; row < this.places.length / 2; row++) {
      const far = (this.places[2 * row] - left) ** 2 + (this.places[2 * row + 1] - top) ** 2;
      if (far >= least) continue;
      best = row;
      least = far;
    }
    return best;
  }

  hover(x, y) {
    const row = this.nearest(x, y);
    if (row === this.pointed) return;
    this.pointed = row;
    this.drawRing();
    const tip = document.getElementById("tip");
    tip.hidden = row === undefined;
    if (tip.hidden) return;
    const { data, labels } = this.page;
    const topic = make("b", { dir: "auto" }, data.topics[labels[row]].name);
    tip.replaceChildren(topic, make("bdi", this.page.opening(row) || data.ids[row]));
    const space = this.canvas.clientWidth;
    const isLeft = x < space / 2;
    Object.assign(tip.style, {
      left: isLeft ? `${x + 14}px` : "auto",
      right: isLeft ? "auto" : `${space - x + 14}px`,
      top: `${Math.min(y + 10, this.canvas.clientHeight - 90)}px`,
    });
  }

  listen() {
    const { canvas, page } = this;
    const pointers = new Map();
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
      moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      const [x, y] = [event.offsetX, event.offsetY];
      if (!before) return this.hover(x, y);
      moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
      if (moved > 4) canvas.classList.add("dragged");
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      if (other) {
        const reach = ([left, top]) => Math.hypot(left - other[0], top - other[1]) || 1;
        this.zoom(reach([x, y]) / reach(before), ...other);
      } else {
        this.x += x - before[0];
        this.y += y - before[1];
        this.draw();
      }
      pointers.set(event.pointerId, [x, y]);
    });
    const end = (event) => {
      const wasDown = pointers.delete(event.pointerId);
      canvas.classList.remove("dragged");
      if (event.type !== "pointerup" || !wasDown || moved > 4) return;
      const row = this.nearest(event.offsetX, event.offsetY);
      if (row !== undefined) page.showDialogue(row);
      else if (page.view.topic || page.view.dialogue) page.show({});
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => this.hover(-1e6, -1e6));
    const wheel = (event) => {
      event.preventDefault();
      const steps = Math.max(-300, Math.min(300, event.deltaY));
      this.zoom(Math.exp(-steps / 400), event.offsetX, event.offsetY);
    };
    canvas.addEventListener("wheel", wheel, { passive: false });
    document.getElementById("closer").addEventListener("click", () => this.zoom(1.5));
    document.getElementById("farther").addEventListener("click", () => this.zoom(1 / 1.5));
    document.getElementById("fit").addEventListener("click", () => this.fit());
    new ResizeObserver(() => {
      if (page.sized) return this.draw();
      page.sized = true;
      this.fit();
    }).observe(canvas);
  }
}
