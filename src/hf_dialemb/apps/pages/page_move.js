"use strict";
// What part of the picture is in view, and what the mouse, a finger and keys do with it.

const LEAST = 0.05; // scales
const GREATEST = 3;
const READABLE = 0.62;
const REST = 160;

// The drawing moves as one layer, which costs nearly nothing; it gets sharp again once it rests.
Picture.prototype.moveTo = function (view) {
  Object.assign(this, view);
  const [x, y, scale] = [this.x.toFixed(2), this.y.toFixed(2), this.scale.toFixed(4)];
  this.world.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
  this.world.classList.add("moving");
  clearTimeout(this.resting);
  this.resting = setTimeout(() => this.world.classList.remove("moving"), REST);
  this.svg.classList.toggle("far", this.scale < CLOSE);
};

Picture.prototype.zoom = function (factor, x = this.svg.clientWidth / 2, y = this.svg.clientHeight / 2) {
  const scale = Math.min(GREATEST, Math.max(LEAST, this.scale * factor));
  const grown = scale / this.scale;
  this.moveTo({ scale, x: x - (x - this.x) * grown, y: y - (y - this.y) * grown });
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
  const scale = all >= least ? all : across >= least ? Math.min(READABLE, across) : READABLE;
  // What is wider than the room has the start in the middle, but no more free room on one side than it must.
  const spare = room.width - scale * width;
  const middle = room.width / 2 - scale * (places.get(this.flow.start).x - left);
  const aside = spare >= 0 ? spare / 2 : Math.min(0, Math.max(spare, middle));
  const y = room.top + Math.max(0, (room.height - scale * height) / 2);
  this.moveTo({ scale, x: room.left + aside - scale * left, y });
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

// Brings a state that is out of view to the middle.
Picture.prototype.reveal = function (number) {
  const place = this.layout.places.get(number);
  if (!place || this.sees(place.x, place.y)) return;
  const { clientWidth, clientHeight } = this.svg;
  this.moveTo({ x: clientWidth / 2 - this.scale * place.x, y: clientHeight / 2 - this.scale * place.y });
};

Picture.prototype.listen = function () {
  const { svg } = this;
  const turned = (event) => {
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    const lines = event.deltaMode ? 16 : 1;
    this.zoom(Math.exp(-event.deltaY * lines * 0.0015), event.clientX - box.left, event.clientY - box.top);
  };
  svg.addEventListener("wheel", turned, { passive: false });
  this.listenToPointers();
  svg.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    this.choose(event.target, true);
    event.preventDefault();
  });
  svg.addEventListener("focusin", ({ target }) => {
    // under the mouse nothing may move before the click
    if (target.matches(".node:focus-visible")) this.reveal(Number(target.dataset.number));
  });
  svg.addEventListener("pointerover", (event) => this.hover(event.target, true));
  svg.addEventListener("pointerout", (event) => this.hover(event.target, false));
};

// What moves less than three pixels is a click.
Picture.prototype.listenToPointers = function () {
  const { svg } = this;
  let before = null;
  let moved = 0;
  svg.addEventListener("pointerdown", (event) => {
    before = event;
    moved = 0;
  });
  addEventListener("pointermove", (event) => {
    if (!before || !event.isPrimary || !event.buttons) return;
    const [x, y] = [event.clientX - before.clientX, event.clientY - before.clientY];
    before = event;
    moved += Math.abs(x) + Math.abs(y);
    if (moved < 3) return;
    svg.classList.add("dragged");
    this.moveTo({ x: this.x + x, y: this.y + y });
  });
  const drop = () => {
    before = null;
    svg.classList.remove("dragged");
  };
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, drop);
  svg.addEventListener("click", (event) => moved < 3 && this.choose(event.target));
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
