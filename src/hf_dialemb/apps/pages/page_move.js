"use strict";
// What part of the picture is in view, and mouse, touch and keys that change it.

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const LEAST = 0.05; // scales
const GREATEST = 3;
const READABLE = 0.62;
const REST = 160;
const PAPER = [690, 810]; // pixels of the print style

// The drawing moves as one layer, which costs nearly nothing; it gets sharp again once it rests.
Picture.prototype.move = function () {
  const [x, y, scale] = [this.x.toFixed(2), this.y.toFixed(2), this.scale.toFixed(4)];
  this.world.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
  this.world.classList.add("moving");
  clearTimeout(this.resting);
  this.resting = setTimeout(() => this.world.classList.remove("moving"), REST);
  this.svg.classList.toggle("far", this.scale < CLOSE);
};

Picture.prototype.moveTo = function (view) {
  Object.assign(this, view);
  this.move();
};

Picture.prototype.zoom = function (factor, x = this.svg.clientWidth / 2, y = this.svg.clientHeight / 2) {
  const scale = Math.min(GREATEST, Math.max(LEAST, this.scale * factor));
  const grown = scale / this.scale;
  this.x = x - (x - this.x) * grown;
  this.y = y - (y - this.y) * grown;
  this.scale = scale;
  this.move();
};

// What lies over the picture: buttons on the right, the legend below.
Picture.prototype.room = function () {
  const legend = document.getElementById("legend").offsetHeight;
  const [left, top, right, below] = [20, 22, 58, legend + 16];
  const { clientWidth, clientHeight } = this.svg;
  return { left, top, width: clientWidth - left - right, height: clientHeight - top - below };
};

Picture.prototype.wholeScale = function ({ width, height }) {
  const room = this.room();
  return Math.max(LEAST, Math.min(room.width / width, room.height / height, 1.15));
};

// Everything in view; but where names could not be read then, as near as they can, from the start on.
Picture.prototype.fit = function (least = 0) {
  const room = this.room();
  const { left, width, height, places } = this.layout;
  const all = this.wholeScale(this.layout);
  const across = room.width / width;
  this.scale = all >= least ? all : across >= least ? Math.min(READABLE, across) : READABLE;
  // What is wider than the room has the start in the middle, but no more free room on one side than it must.
  const spare = room.width - this.scale * width;
  const middle = room.width / 2 - this.scale * (places.get(this.flow.start).x - left);
  const aside = spare >= 0 ? spare / 2 : Math.min(0, Math.max(spare, middle));
  this.x = room.left + aside - this.scale * left;
  this.y = room.top + Math.max(0, (room.height - this.scale * height) / 2);
  this.move();
};

// Paper is of another size than the window; see the print style.
Picture.prototype.listenToPrinter = function () {
  let before = {};
  addEventListener("beforeprint", () => {
    const { left, width, height } = this.layout;
    const scale = Math.min(PAPER[0] / width, PAPER[1] / height, 1);
    before = { x: this.x, y: this.y, scale: this.scale };
    Object.assign(this, { scale, x: (PAPER[0] - scale * width) / 2 - scale * left, y: 5 });
    this.move();
  });
  addEventListener("afterprint", () => {
    Object.assign(this, before);
    this.move();
  });
};

// Brings states into view together, no nearer than they are and no farther than they can be made out.
Picture.prototype.frame = function (numbers) {
  const cells = numbers.map((number) => this.layout.places.get(number)).filter(Boolean);
  const margin = 60;
  if (!cells.length) return;
  const { clientWidth: width, clientHeight: height } = this.svg;
  const left = Math.min(...cells.map((cell) => cell.x - cell.width / 2));
  const right = Math.max(...cells.map((cell) => cell.x + cell.width / 2));
  const top = Math.min(...cells.map((cell) => cell.y - cell.height / 2));
  const bottom = Math.max(...cells.map((cell) => cell.y + cell.height / 2));
  const fitting = Math.min((width - 2 * margin) / (right - left), (height - 2 * margin) / (bottom - top));
  const scale = Math.max(0.3, Math.min(fitting, Math.max(this.scale, 0.6)));
  const inside = scale === this.scale && this.sees(left, top) && this.sees(right, bottom);
  const y = scale > fitting ? margin - scale * top : height / 2 - (scale * (top + bottom)) / 2;
  if (!inside) this.moveTo({ scale, x: width / 2 - (scale * (left + right)) / 2, y });
};

Picture.prototype.sees = function (x, y) {
  const [across, down] = [this.x + this.scale * x, this.y + this.scale * y];
  return across > 0 && across < this.svg.clientWidth && down > 0 && down < this.svg.clientHeight - 30;
};

// Brings a state into view: just so far if a part of it is there already, else to the middle.
Picture.prototype.reveal = function (number) {
  const place = this.layout.places.get(number);
  if (!place) return;
  const { clientWidth: width, clientHeight: height } = this.svg;
  const { scale } = this;
  const [x, y] = [this.x + scale * place.x, this.y + scale * place.y];
  const [across, down] = [(scale * place.width) / 2 + 20, (scale * place.height) / 2 + 20];
  const near = this.sees(place.x, place.y);
  const to = near
    ? [Math.min(width - across, Math.max(across, x)), Math.min(height - down - 30, Math.max(down, y))]
    : [width / 2, height / 2];
  if (to[0] !== x || to[1] !== y) this.moveTo({ x: this.x + to[0] - x, y: this.y + to[1] - y });
};

Picture.prototype.listen = function () {
  const { svg } = this;
  svg.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      const lines = event.deltaMode ? 16 : 1;
      this.zoom(Math.exp(-event.deltaY * lines * 0.0015), event.clientX - box.left, event.clientY - box.top);
    },
    { passive: false },
  );
  this.listenToPointers();
  this.listenToPrinter();
  svg.addEventListener("keydown", (event) => this.key(event));
  svg.addEventListener("focusin", (event) => {
    const node = event.target.closest(".node");
    if (!node) return;
    this.rove(Number(node.dataset.number));
    if (node.matches(":focus-visible")) this.reveal(this.tabbed); // under the mouse nothing may move before the click
  });
  for (const [name, on] of [
    ["pointerover", true],
    ["pointerout", false],
  ]) {
    svg.addEventListener(name, (event) => this.hover(event.target, on));
  }
};

// One finger or the mouse moves, two fingers zoom; what moves less than three pixels is a click.
Picture.prototype.listenToPointers = function () {
  const { svg } = this;
  const down = new Map();
  let moved = 0;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    if (!down.size) moved = 0;
    down.set(event.pointerId, event);
  });
  addEventListener("pointermove", (event) => {
    if (!event.buttons) down.clear(); // the button was let go outside the window
    const before = down.get(event.pointerId);
    if (!before) return;
    const [x, y] = [event.clientX - before.clientX, event.clientY - before.clientY];
    moved += Math.abs(x) + Math.abs(y);
    if (down.size === 2) this.pinch(down, event);
    down.set(event.pointerId, event);
    if (down.size > 1 || moved < 3) return;
    svg.classList.add("dragged");
    this.x += x;
    this.y += y;
    this.move();
  });
  for (const name of ["pointerup", "pointercancel"]) {
    addEventListener(name, (event) => {
      down.delete(event.pointerId);
      svg.classList.remove("dragged");
    });
  }
  svg.addEventListener("click", (event) => moved < 3 && this.choose(event.target));
};

Picture.prototype.pinch = function (down, event) {
  const other = [...down.values()].find((one) => one.pointerId !== event.pointerId);
  const before = down.get(event.pointerId);
  const distance = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
  const box = this.svg.getBoundingClientRect();
  this.zoom(distance(event) / distance(before), other.clientX - box.left, other.clientY - box.top);
};

Picture.prototype.choose = function (target, byKey = false) {
  const { number, key } = target.closest("[data-number], [data-key]")?.dataset || {};
  this.chosen({ number: number === undefined ? -1 : Number(number), key, byKey });
};

Picture.prototype.hover = function (target, on) {
  const part = target.closest("[data-number], [data-key]");
  if (!part || this.svg.classList.contains("dragged")) return;
  const keys = part.dataset.key ? new Set([part.dataset.key]) : this.around(Number(part.dataset.number))[1];
  for (const key of keys) {
    const { line, label, edge } = this.edges.get(key) || {};
    line?.classList.toggle("near", on);
    label?.classList.toggle("near", on);
    if (edge && !line.querySelector("title")) line.prepend(element("title", {}, this.describe(edge)));
  }
};

Picture.prototype.key = function (event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Enter" || event.key === " ") this.choose(event.target, true);
  else if (ARROWS[event.key] && event.target.closest(".node")) this.step(ARROWS[event.key]);
  else return;
  event.preventDefault();
  event.stopPropagation();
};

// The nearest state in a direction gets the focus.
Picture.prototype.step = function ([right, below]) {
  const here = this.layout.places.get(this.tabbed);
  let best = null;
  let least = Infinity;
  for (const [number, place] of this.layout.places) {
    const [x, y] = [place.x - here.x, place.y - here.y];
    const ahead = x * right + y * below;
    const aside = Math.abs(x * below) + Math.abs(y * right);
    const distance = ahead + 2.5 * aside;
    if (ahead > 1 && distance < least) [best, least] = [number, distance];
  }
  if (best !== null) this.nodes.get(best).focus({ preventScroll: true });
};

// Of all states one can be reached by the tabulator, the others by arrow keys from there.
Picture.prototype.rove = function (number) {
  this.nodes.get(this.tabbed)?.setAttribute("tabindex", -1);
  this.nodes.get(number)?.setAttribute("tabindex", 0);
  this.tabbed = number;
};
