"use strict";
// The page's address says what is open beside the map: #state=user-3, or #dialogue=…&turn=3

const NOTHING = { state: "", edge: "", dialogue: "", turn: "", points: "" };
const ADDRESS = ["tab", "state", "edge", "dialogue", "turn"];
const page = (() => {
  const flow = readFlow(JSON.parse(document.getElementById("flow").textContent));
  const first = { tab: "map", ...NOTHING, ...flow.pruning, main: false };
  const by = (id) => document.getElementById(id);
  const self = { flow, view: first, graph: null, show, point, focusPanel };
  const picture = new Picture(by("graph"), flow, choose);
  let touched = false;
  self.picture = picture;
  self.differences = flow.comparison && new Map(flow.comparison.edges.map((edge) => [edge.key, edge]));

  // What makes no sense in the address is left out.
  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    const view = { ...self.view, tab: first.tab, ...NOTHING };
    if (by(`view-${given.get("tab")}`)) view.tab = given.get("tab");
    if (flow.numbers.has(given.get("state"))) view.state = given.get("state");
    else if (flow.byKey.has(given.get("edge"))) view.edge = given.get("edge");
    else if (flow.byDialogue.has(given.get("dialogue"))) {
      view.dialogue = given.get("dialogue");
      view.turn = given.get("turn") ?? "";
    }
    return view;
  }

  function write(pushed) {
    const kept = ADDRESS.filter((name) => self.view[name] !== first[name]).map((name) => [name, self.view[name]]);
    history[pushed ? "pushState" : "replaceState"](null, "", `#${new URLSearchParams(kept)}`);
  }

  function show(changes) {
    const before = self.view;
    const chosen = ["state", "edge", "dialogue", "points"].some((name) => changes[name]);
    self.view = { ...before, ...(chosen ? NOTHING : {}), ...changes };
    write(["tab", "state", "edge", "dialogue"].some((name) => self.view[name] !== before[name]));
    render(before);
  }

  function choose({ number, key, byKey }) {
    if (key) show({ edge: key });
    else show(number < 0 ? NOTHING : { state: flow.ids[number] });
    if (byKey) focusPanel();
  }

  // Lights states up without opening any.
  function point(numbers) {
    show({ tab: "map", points: numbers.join() });
    picture.frame(numbers);
  }

  function render(before) {
    const changed = (...names) => !before || names.some((name) => self.view[name] !== before[name]);
    const opened = changed("state", "edge", "dialogue");
    const pruned = changed("nodes", "edges");
    if (changed("tab")) drawTabs();
    if (!before) drawLegend(self, by("legend"));
    if (pruned) layAnew(!before);
    if (pruned || changed("main")) colour();
    if (opened || pruned || changed("points")) drawPanel(opened);
    if (changed("turn") && before) moveTurn();
    drawControls(self);
    lightUp(opened || pruned || changed("turn"));
  }

  function layAnew(atFirst) {
    self.graph = prune(flow, self.view);
    picture.draw(self.graph);
    if (atFirst || !touched) fit();
  }

  // Names are to be read at first; where the whole map is too large for that, it begins at the start.
  function fit() {
    if (by("graph").clientWidth) picture.fit(0.45);
  }

  function colour() {
    const { states, steps } = self.view.main ? flow.main : { states: [], steps: [] };
    picture.mark("main", new Set(states), new Set(steps));
    picture.colour(flow.comparison ? difference : null);
  }

  function difference(edge) {
    const found = self.differences.get(edge.key);
    if (!found || found.difference === null) return { kind: "same", text: found ? NONE_KNOWN : "" };
    const kind = found.difference > 0 ? "gain" : "loss";
    return { kind: found.p >= 0.05 ? "same" : kind, text: points(found.difference) };
  }

  function drawTabs() {
    for (const tab of by("tabs").children) {
      const on = tab.dataset.tab === self.view.tab;
      tab.setAttribute("aria-pressed", String(on));
      by(`view-${tab.dataset.tab}`).hidden = !on;
    }
    if (self.view.tab === "map" && picture.layout && !touched) fit();
    if (self.view.tab === "clusters") drawClusters(self, by("view-clusters"));
    if (self.view.tab === "compare") drawComparison(self, by("view-compare"));
  }

  function panelParts({ state, edge, dialogue, turn }) {
    if (dialogue) return dialoguePanel(self, dialogue, Number(turn));
    if (edge) return edgePanel(self, edge);
    return state ? statePanel(self, flow.numbers.get(state)) : overviewPanel(self);
  }

  function drawPanel(anew) {
    const inside = by("panel").contains(document.activeElement);
    by("panel").replaceChildren(...panelParts(self.view).filter(Boolean));
    if (anew) by("panel").scrollTop = 0;
    if (inside) focusPanel(); // what had the focus is gone
    if (self.view.turn) moveTurn();
  }

  function moveTurn() {
    by("panel").querySelector("[aria-current]")?.removeAttribute("aria-current");
    const button = by("panel").querySelector(`[data-turn="${Number(self.view.turn)}"]`);
    button?.setAttribute("aria-current", "step");
    button?.scrollIntoView({ block: "nearest" });
  }

  function lightUp(moved) {
    const { state, edge, dialogue, turn, points: lit } = self.view;
    const number = flow.numbers.get(state);
    picture.way(null);
    picture.mark("chosen", new Set([number]), new Set([edge]));
    if (dialogue) walk(flow.byDialogue.get(dialogue), Number(turn), moved);
    else if (picture.nodes.has(number)) picture.light(...picture.around(number));
    else if (edge) lightEdge(flow.byKey.get(edge), moved);
    else if (lit) picture.light(...between(lit.split(",").map(Number)));
    else picture.light();
    if (state && moved) picture.reveal(number);
  }

  function lightEdge({ source, target, key }, moved) {
    picture.light(new Set([source, target]), new Set([key]));
    if (moved) picture.frame([source, target]);
  }

  function walk(dialogue, turn, moved) {
    const path = pathOf(flow, dialogue);
    picture.way(path, turn ? path[turn] : undefined);
    if (turn && moved) picture.reveal(path[turn]);
    else if (moved) picture.frame(path);
  }

  function between(numbers) {
    const among = new Set(numbers);
    if (among.size === 1) return picture.around(numbers[0]);
    const edges = self.graph.edges.filter((edge) => among.has(edge.source) && among.has(edge.target));
    return [among, new Set(edges.map((edge) => edge.key))];
  }

  function focusPanel() {
    by("panel").querySelector("h2")?.focus({ preventScroll: true });
  }

  function turnBy(step) {
    if (!self.view.dialogue) return;
    const last = flow.byDialogue.get(self.view.dialogue).states.length;
    show({ turn: String(Math.min(last, Math.max(1, Number(self.view.turn) + step))) });
  }

  const KEYS = {
    "/": () => by("search").focus(),
    "+": () => closer(1.25),
    "-": () => closer(0.8),
    0: () => by("fit").click(),
    Escape: leave,
    ArrowRight: () => turnBy(1),
    ArrowLeft: () => turnBy(-1),
  };

  // The keyboard goes back to the state that it came from.
  function leave() {
    const inside = by("panel").contains(document.activeElement);
    const node = picture.nodes.get(flow.numbers.get(self.view.state));
    show(NOTHING);
    if (inside) node?.focus({ preventScroll: true });
  }

  function closer(factor) {
    touched = true;
    picture.zoom(factor);
  }

  function onKey(event) {
    const typed = event.target.closest?.("input:not([type=checkbox])");
    if (event.ctrlKey || event.metaKey || event.altKey || typed || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  }

  function listen() {
    addEventListener("keydown", onKey);
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
    for (const tab of by("tabs").children) tab.addEventListener("click", () => show({ tab: tab.dataset.tab }));
    listenToControls();
    listenToSearch(self);
  }

  function follow() {
    const before = self.view;
    self.view = read();
    if (JSON.stringify(before) !== JSON.stringify(self.view)) render(before);
  }

  function listenToControls() {
    let asked = 0;
    for (const name of ["nodes", "edges"]) {
      by(name).addEventListener("input", ({ target }) => {
        // Small thresholds matter most, so the slider is finer there.
        const changes = { [name]: Number(((target.value / 100) ** 2).toFixed(4)) };
        // a slider tells more often than the graph can be laid out
        cancelAnimationFrame(asked);
        asked = requestAnimationFrame(() => show(changes));
      });
    }
    by("main").addEventListener("change", (event) => show({ main: event.target.checked }));
    by("reset").addEventListener("click", () => show({ ...flow.pruning }));
    by("open-controls").addEventListener("click", (event) => {
      event.target.setAttribute("aria-expanded", String(by("controls").classList.toggle("open")));
    });
  }

  self.begin = () => {
    self.view = read();
    listen();
    drawPath(self, by("path"));
    render(null);
  };
  return self;
})();
page.begin();
