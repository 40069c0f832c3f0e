"use strict";
// The page's address says what is shown: #state=user-3&nodes=0.05&edges=0.1&weights=max-out&dialogue=…&turn=3

const NOTHING = { state: "", edge: "", dialogue: "", turn: "", points: "" };
const CHOICES = ["state", "edge", "dialogue", "points"]; // at most one of them is chosen
const page = (() => {
  const flow = readFlow(JSON.parse(document.getElementById("flow").textContent));
  const first = {
    tab: "map",
    ...NOTHING,
    ...flow.pruning,
    main: false,
  };
  const by = (id) => document.getElementById(id);
  const self = { flow, view: first, graph: null, show, point, focusPanel };
  const picture = new Picture(by("graph"), flow, choose);
  let touched = false;
  self.picture = picture;
  self.differences = flow.comparison && new Map(flow.comparison.edges.map((edge) => [edge.key, edge]));

  // From the address; what makes no sense there is left out.
  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    const view = { ...first };
    for (const [name, value] of given) if (typeof first[name] === "string") view[name] = value;
    for (const name of ["nodes", "edges"]) {
      const value = Number(given.get(name));
      if (given.has(name) && value >= 0 && (value < 1 || (name === "edges" && value === 1))) view[name] = value;
    }
    view.main = given.get("main") === "yes";
    if (!["max", "max-out", "prob-out"].includes(view.weights)) view.weights = first.weights;
    if (!by(`view-${view.tab}`)) view.tab = first.tab;
    if (!flow.numbers.has(view.state)) view.state = "";
    view.edge = flow.byKey.has(edgeKey(view.edge)) ? edgeKey(view.edge) : "";
    if (!flow.byDialogue.has(view.dialogue)) view.dialogue = "";
    return view;
  }

  // In the address states are called by their ids, so that it holds for a page that is made anew.
  function edgeKey(text) {
    return text
      .split(">")
      .map((id) => flow.numbers.get(id))
      .join(">");
  }

  function edgeName(key) {
    return key
      .split(">")
      .map((number) => idOf(flow, Number(number)))
      .join(">");
  }

  function write(pushed) {
    const printed = {
      ...self.view,
      main: self.view.main ? "yes" : "",
      edge: self.view.edge && edgeName(self.view.edge),
    };
    const kept = Object.entries(printed).filter(
      ([name, value]) => value !== "" && value !== first[name] && name !== "points",
    );
    history[pushed ? "pushState" : "replaceState"](
      null,
      "",
      `#${new URLSearchParams(kept.map(([name, value]) => [name, String(value)]))}`,
    );
  }

  function show(changes) {
    const before = self.view;
    const chosen = CHOICES.find((name) => changes[name]);
    self.view = { ...before, ...(chosen ? NOTHING : {}), ...changes };
    write(["tab", "state", "edge", "dialogue"].some((name) => self.view[name] !== before[name]));
    render(before);
  }

  function choose({ number, key, byKey }) {
    if (key) show({ edge: key });
    else show(number < 0 ? NOTHING : { state: idOf(flow, number) });
    if (byKey) focusPanel();
  }

  // Lights states up without opening any.
  function point(numbers) {
    show({ tab: "map", points: numbers.join() });
    picture.frame(numbers);
  }

  function render(before) {
    const changed = (...names) => !before || names.some((name) => self.view[name] !== before[name]);
    if (changed("tab")) drawTabs();
    if (!before) drawLegend(self, by("legend"));
    if (changed("nodes", "edges", "weights")) layAnew(!before);
    if (changed("nodes", "edges", "weights", "main")) colour();
    if (changed("nodes", "edges", "weights", "tab")) drawViews();
    if (changed("state", "edge", "dialogue", "points", "nodes", "edges", "weights"))
      drawPanel(changed("state", "edge", "dialogue"));
    if (changed("turn") && before) moveTurn();
    drawControls(self);
    lightUp(changed("state", "edge", "dialogue", "turn", "nodes", "edges", "weights"));
  }

  function layAnew(atFirst) {
    self.graph = prune(flow, self.view);
    picture.draw(self.graph);
    if (atFirst || !touched) fit();
    drawPath(self, by("path"));
  }

  function fit() {
    if (!by("graph").clientWidth) return;
    picture.fit(atMost());
    touched = false;
  }

  // Names are to be read at first; where the whole map is too large for that, it begins at the start.
  function atMost() {
    return touched ? 0 : 0.45;
  }

  function colour() {
    const { states, steps } = self.view.main ? flow.main : { states: [], steps: [] };
    picture.mark("main", new Set(states), new Set(steps));
    picture.colour(flow.comparison ? difference : null);
  }

  function difference(edge) {
    const found = self.differences.get(edge.key);
    if (!found || found.difference === null) return { kind: "same", text: found ? NONE_KNOWN : "" };
    return {
      kind: found.p >= 0.05 ? "same" : found.difference > 0 ? "gain" : "loss",
      text: points(found.difference),
    };
  }

  function drawTabs() {
    for (const tab of by("tabs").children) {
      const on = tab.dataset.tab === self.view.tab;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      by(`view-${tab.dataset.tab}`).hidden = !on;
    }
    if (self.view.tab === "map" && picture.layout && !touched) fit();
  }

  function drawViews() {
    if (self.view.tab === "clusters") drawClusters(self, by("view-clusters"));
    if (self.view.tab === "compare") drawComparison(self, by("view-compare"));
    if (self.view.tab === "about") drawAbout(self, by("view-about"));
  }

  function drawPanel(anew) {
    const { state, edge, dialogue, turn } = self.view;
    const inside = by("panel").contains(document.activeElement);
    const parts = dialogue
      ? dialoguePanel(self, dialogue, Number(turn))
      : edge
        ? edgePanel(self, edge)
        : state
          ? statePanel(self, flow.numbers.get(state))
          : overviewPanel(self);
    by("panel").replaceChildren(...parts.filter(Boolean));
    if (anew) by("panel").scrollTop = 0;
    if (inside) focusPanel(); // what had the focus is gone
    if (dialogue && turn) moveTurn();
  }

  function moveTurn() {
    for (const button of by("panel").querySelectorAll(".turn")) {
      const on = button.dataset.turn === self.view.turn;
      if (on) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
      if (on) button.scrollIntoView({ block: "nearest" });
    }
  }

  function lightUp(moved) {
    const { state, edge, dialogue, turn, points: lit } = self.view;
    const number = flow.numbers.get(state);
    picture.way(null);
    picture.mark("chosen", new Set(state ? [number] : []), new Set(edge ? [edge] : []));
    if (dialogue) walk(flow.dialogues[flow.byDialogue.get(dialogue)], Number(turn), moved);
    else if (state && picture.nodes.has(number)) picture.light(...picture.around(number));
    else if (edge) lightEdge(edge, moved);
    else if (lit) picture.light(...between(lit.split(",").map(Number)));
    else picture.light();
    if (state && moved) picture.reveal(number);
  }

  function lightEdge(key, moved) {
    const ends = key.split(">").map(Number);
    picture.light(new Set(ends), new Set([key]));
    if (moved) picture.frame(ends);
  }

  function walk(dialogue, turn, moved) {
    const path = pathOf(flow, dialogue);
    picture.way(path, turn ? path[turn] : undefined);
    if (turn && moved) picture.reveal(path[turn]);
    else if (moved) picture.frame(path);
  }

  function between(numbers) {
    const one = new Set(numbers);
    if (one.size === 1) return picture.around(numbers[0]);
    return [
      one,
      new Set(self.graph.edges.filter((edge) => one.has(edge.source) && one.has(edge.target)).map((edge) => edge.key)),
    ];
  }

  function focusPanel() {
    by("panel").querySelector("h2")?.focus({ preventScroll: true });
  }

  function turnBy(step) {
    const dialogue = flow.dialogues[flow.byDialogue.get(self.view.dialogue)];
    const last = dialogue.states.length;
    show({ turn: String(Math.min(last, Math.max(1, Number(self.view.turn) + step))) });
  }

  function dialogueBy(step) {
    const next = flow.dialogues[flow.byDialogue.get(self.view.dialogue) + step];
    if (next) show({ dialogue: next.id, turn: "" });
  }

  const KEYS = {
    "/": () => by("search").focus(),
    "+": () => closer(1.25),
    "=": () => closer(1.25),
    "-": () => closer(0.8),
    0: () => by("fit").click(),
    m: () => show({ main: !self.view.main }),
    Escape: leave,
    ArrowRight: () => self.view.dialogue && turnBy(1),
    ArrowLeft: () => self.view.dialogue && turnBy(-1),
    n: () => self.view.dialogue && dialogueBy(1),
    p: () => self.view.dialogue && dialogueBy(-1),
  };

  // The keyboard goes back to the state that it came from.
  function leave() {
    const inside = by("panel").contains(document.activeElement);
    show(NOTHING);
    if (inside) picture.nodes.get(picture.tabbed)?.focus({ preventScroll: true });
  }

  function closer(factor) {
    touched = true;
    picture.zoom(factor);
  }

  function listen() {
    addEventListener("keydown", (event) => {
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        event.target.closest?.("input:not([type=checkbox]), select, [role=tablist]")
      )
        return;
      if (!KEYS[event.key]) return;
      event.preventDefault();
      KEYS[event.key]();
    });
    for (const name of ["popstate", "hashchange"]) addEventListener(name, follow);
    let width = by("graph").clientWidth;
    new ResizeObserver(() => {
      if (width !== by("graph").clientWidth && !touched) fit();
      width = by("graph").clientWidth;
    }).observe(by("graph"));
    for (const name of ["wheel", "pointerdown"]) by("graph").addEventListener(name, () => (touched = true));
    by("closer").addEventListener("click", () => closer(1.25));
    by("farther").addEventListener("click", () => closer(0.8));
    by("fit").addEventListener("click", () => {
      picture.fit();
      touched = false;
    });
    by("theme").addEventListener("click", turnTheme);
    by("tabs").addEventListener(
      "click",
      (event) => event.target.dataset.tab && show({ tab: event.target.dataset.tab }),
    );
    by("tabs").addEventListener("keydown", moveTab);
    listenToControls();
    listenToSearch(self);
  }

  function follow() {
    const before = self.view;
    self.view = { ...read(), points: "" };
    if (JSON.stringify(before) !== JSON.stringify(self.view)) render(before);
  }

  function listenToControls() {
    let asked = 0;
    const later = (changes) => {
      // a slider tells more often than the graph can be laid out
      cancelAnimationFrame(asked);
      asked = requestAnimationFrame(() => show(changes));
    };
    for (const name of ["nodes", "edges"]) {
      // Small thresholds matter most, so the slider is finer there.
      by(name).addEventListener("input", (event) =>
        later({ [name]: Number(((event.target.value / 100) ** 2).toFixed(4)) }),
      );
    }
    by("weights").addEventListener("change", (event) => show({ weights: event.target.value }));
    by("main").addEventListener("change", (event) => show({ main: event.target.checked }));
    by("reset").addEventListener("click", () => show({ ...flow.pruning }));
    by("controls").addEventListener("submit", (event) => event.preventDefault());
    by("open-controls").addEventListener("click", (event) => {
      event.target.setAttribute("aria-expanded", String(by("controls").classList.toggle("open")));
    });
  }

  function moveTab(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const tabs = [...by("tabs").children];
    if (!step) return;
    const next = tabs[(tabs.findIndex((tab) => tab.dataset.tab === self.view.tab) + step + tabs.length) % tabs.length];
    show({ tab: next.dataset.tab });
    next.focus();
  }

  function turnTheme() {
    const now =
      document.documentElement.dataset.theme ||
      (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  }

  self.begin = () => {
    self.view = read();
    listen();
    render(null);
  };
  return self;
})();
page.begin();
