"use strict";
// The page of topics: a map of dialogues, and a panel with topics and what is said in dialogues.
// Text of dialogues gets into the page as text only, never as markup.

const figure = (number) => number.toLocaleString("en");
const percent = (share) => `${(100 * share).toFixed(share && share < 0.01 ? 1 : 0)} %`;
const dateOf = (time) => time.replace("T", " ");
const soft = (...parts) => make("p.soft", ...parts);

// A list of which the first are shown, and more on demand.
function longList(rows, item, shown = 30) {
  const list = make("ul");
  const more = make("button.more");
  const add = (count) => {
    const start = list.childElementCount;
    list.append(...rows.slice(start, start + count).map((row) => make("li", item(row))));
    more.textContent = `Show more of ${figure(rows.length)}`;
    if (list.childElementCount === rows.length) more.remove();
  };
  more.addEventListener("click", () => add(100));
  add(shown);
  return rows.length > shown ? [list, more] : [list];
}

class TopicsPage {
  constructor(data) {
    this.data = data;
    this.labels = Int32Array.from(data.labels); // faster to read than a list
    this.members = data.topics.map(() => []);
    this.labels.forEach((label, row) => this.members[label].push(row));
    const { near } = data;
    for (const rows of this.members)
      rows.sort((one, other) => near[other] - near[one] || one - other);
    this.numbers = new Map(data.topics.map((topic, number) => [topic.id, number]));
    this.rowsById = new Map(data.ids.map((id, row) => [id, row]));
    Object.assign(this, { view: {}, hits: null, query: "", searches: 0, lowered: [] });
    this.panel = document.getElementById("panel");
    this.map = new TopicMap(this);
    this.changes = new TopicChanges(data, () => this.render());
    this.listen();
    this.follow();
  }

  topicOf(row) {
    return this.data.topics[this.labels[row]];
  }

  showDialogue(row) {
    this.show({ topic: this.topicOf(row).id, dialogue: this.data.ids[row] });
  }

  opening(row) {
    return this.data.texts[row].slice(0, 2).map((turn) => turn[1]).join(" / ").slice(0, 200);
  }

  render() {
    const topic = this.numbers.get(this.view.topic);
    const row = this.rowsById.get(this.view.dialogue);
    let parts;
    if (row !== undefined) parts = this.dialoguePanel(row);
    else if (this.hits) parts = this.hitsPanel();
    else if (topic !== undefined) parts = this.topicPanel(topic);
    else parts = this.overview();
    const focused = this.panel.contains(document.activeElement) ? document.activeElement : null;
    this.panel.replaceChildren(...this.changes.note(), ...parts);
    if (focused) (this.sameButton(focused) ?? this.panel).focus({ preventScroll: true });
    this.map.draw();
  }

  // Who goes by keyboard stays at the button that was pressed, as long as it is there.
  sameButton(before) {
    const label = (button) => button.getAttribute("aria-label") ?? button.textContent;
    const buttons = [...this.panel.querySelectorAll("button:enabled")];
    return buttons.find((button) => {
      return button.className === before.className && label(button) === label(before);
    });
  }

  button(view, text, attributes = {}) {
    return make("button.button", { click: () => this.show(view), ...attributes }, text);
  }

  overview() {
    const { data } = this;
    const list = this.view.list ?? "";
    const way = (name, text) => {
      return this.button({ list: name }, text, { "aria-pressed": `${list === name}` });
    };
    const ways = [way("", "Largest first"), way("ends", "How they end")];
    if (data.comparisons.length) ways.push(way("comparison", "Comparison"));
    const parts = [
      make("h2", counted(data.topics.filter((topic) => topic.id !== "none").length, "topic")),
      soft("Each point is a dialogue; near ones are alike. Choose a topic or a point."),
      make("div.ways", { role: "group", "aria-label": "What is shown of topics" }, ways),
    ];
    const link = (id, text = data.topics[this.numbers.get(id)].name, end = "") => {
      return this.button({ topic: id, end }, text, { class: "link" });
    };
    if (list === "ends") return [...parts, endsTable(data, link)];
    if (list === "comparison")
      return [...parts, ...comparisonsOf(data, link)];
    const all = data.periods.map((_, place) => {
      return data.topics.reduce((sum, topic) => sum + topic.periods[place], 0);
    });
    const row = (number) => [this.topicButton(number), ...this.flowLink(data.topics[number])];
    return [...parts, ...longList([...data.topics.keys()], row, 60), ...this.curve(all)];
  }

  flowLink(topic) {
    const href = `flows/${topic.id}/index.html`;
    return topic.flow ? [make("a.flow", { href }, "How these dialogues go →")] : [];
  }

  topicButton(number) {
    const topic = this.data.topics[number];
    const share = `${(100 * topic.size) / this.data.topics[0].size}%`;
    const attributes = { class: "topic", style: `--share: ${share}` };
    return this.button({ topic: topic.id }, [
      this.dot(number),
      make("b", topic.name),
      make("span.figure", `${figure(topic.size)} · ${this.shareOf(topic)}`),
      make("span.soft", topic.phrases.join(" · ")),
    ], attributes);
  }

  shareOf(topic) {
    return `${Math.round((100 * topic.size) / this.data.ids.length)} %`;
  }

  dot(number) {
    return make("span.dot", { style: `--colour: ${this.map.colours[number]}` });
  }

  dialogueButton(row) {
    const id = this.data.ids[row];
    const text = this.hits ? this.hits.get(row) : this.opening(row);
    const facts = [id, dateOf(this.data.times[row] ?? "")].filter(Boolean);
    return this.button({ ...this.view, dialogue: id }, [
      this.dot(this.labels[row]),
      make("span.said", text || "(not on this page)"),
      make("span.soft", facts.join(" · ")),
    ], { class: "hit" });
  }

  curve(counts, colour = "var(--link)") {
    if (!counts.length) return [];
    const { periods, unit } = this.data;
    const top = Math.max(1, ...counts);
    const bars = counts.map((count, place) => {
      const title = `${dateOf(periods[place])}: ${counted(count, "dialogue")}`;
      return make("i", { title, style: `height: ${(100 * count) / top}%` });
    });
    const texts = [dateOf(periods[0]), `at most ${figure(top)}`, dateOf(periods.at(-1))];
    return [
      make("h3", `Over time, by ${unit}`),
      make("div.over", { style: `--colour: ${colour}` }, bars),
      make("p.soft.bar", texts.map((text) => make("span", text))),
    ];
  }

  topicPanel(number) {
    const { data } = this;
    const topic = data.topics[number];
    const chips = (title, phrases) => [
      make("h3", title),
      make("div.chips", phrases.map((text) => make("span.chip", text))),
    ];
    const roles = Object.entries(topic.by_role).filter(([, phrases]) => phrases.length);
    return [
      this.button({ list: this.view.list }, "← All topics"),
      make("h2", topic.name),
      topic.sentence && make("p.sentence", { dir: "auto" }, topic.sentence),
      soft(`${counted(topic.size, "dialogue")}, ${this.shareOf(topic)} of all`),
      ...this.flowLink(topic),
      ...chips("Tells it from the others", topic.phrases),
      ...roles.flatMap(([role, phrases]) => chips(`The ${role} says`, phrases)),
      make("h3", "How they end"),
      endBar(data, topic.ends),
      make("div.ways", data.kinds.map((end, kind) => {
        const attributes = { "aria-pressed": `${this.view.end === end}` };
        const view = { topic: topic.id, end: this.view.end === end ? "" : end };
        return this.button(view, [endMark(kind), `${end} ${figure(topic.ends[kind])}`], attributes);
      })),
      ...this.changes.ofTopic(number),
      ...this.curve(topic.periods, this.map.colours[number]),
      make("h3", "Dialogues, the most typical first"),
      ...longList(this.shown(number), (row) => this.dialogueButton(row)),
    ].filter(Boolean);
  }

  // The dialogues of a topic, or those that end in the way that was chosen.
  shown(number) {
    const kind = this.data.kinds.indexOf(this.view.end);
    return this.members[number].filter((row) => kind < 0 || this.data.ends[row] === kind);
  }

  dialoguePanel(row) {
    const { ids, near, times, texts } = this.data;
    const topic = this.topicOf(row);
    const rows = this.hits ? [...this.hits.keys()] : this.shown(this.labels[row]);
    const place = rows.indexOf(row);
    const step = (by, text) => {
      const next = place < 0 ? undefined : rows[place + by];
      const attributes = { class: "", disabled: next === undefined };
      return this.button({ ...this.view, dialogue: ids[next] }, text, attributes);
    };
    const back = this.hits
      ? this.button({}, "← All found")
      : this.button({ ...this.view, dialogue: "" }, `← ${shortened(topic.name)}`);
    const facts = [topic.name, `cosine ${(near[row] / 1000).toFixed(2)}`, dateOf(times[row] ?? "")];
    const text = `${figure(place + 1)} of ${figure(rows.length)}`;
    const count = make("span.soft", text);
    const turns = texts[row].map((turn) => this.turn(...turn));
    return [
      back,
      make("h2", ids[row]),
      soft(facts.filter(Boolean).join(" · ")),
      make("div.bar", step(-1, "← Previous"), count, step(1, "Next →")),
      turns.length
        ? make("ol.turns", turns)
        : make("p.hint", "Its text is not on this page, which would be too large."),
    ];
  }

  turn(role, text, name = "") {
    const { roles } = this.data;
    const who = name ? `${name} (${roles[role]})` : roles[role];
    const parts = [
      make("span.who", who),
      make("span.said", this.marked(text)),
    ];
    return make("li", { class: `role-${role}` }, make("div.turn", parts));
  }

  marked(text) {
    const start = this.query ? text.toLowerCase().indexOf(this.query) : -1;
    if (start < 0) return [text];
    const end = start + this.query.length;
    return [text.slice(0, start), make("mark", text.slice(start, end)), text.slice(end)];
  }

  hitsPanel() {
    const rows = [...this.hits.keys()];
    const { topics } = this.data;
    const isHit = ({ name, phrases }) => {
      return [name, ...phrases].some((phrase) => phrase.toLowerCase().includes(this.query));
    };
    const numbers = [...topics.keys()].filter((number) => isHit(topics[number]));
    return [
      make("h2", rows.length ? `${counted(rows.length, "dialogue")} found` : "Nothing found"),
      ...longList(numbers, (number) => this.topicButton(number)),
      ...longList(rows, (row) => this.dialogueButton(row)),
    ];
  }

  // What is shown, and its address.
  show(view, again = false) {
    this.view = Object.fromEntries(Object.entries(view).filter(([, value]) => value));
    const words = new URLSearchParams(this.view).toString();
    history[again ? "replaceState" : "pushState"](null, "", `#${words}`);
    this.render();
    this.panel.scrollTop = 0;
    if (matchMedia("(max-width: 40rem)").matches && words) this.panel.scrollIntoView();
  }

  follow() {
    this.view = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    this.render();
  }

  // A search goes on in slices, so that the map stays smooth.
  find(query) {
    this.query = query.trim().toLowerCase();
    const mine = ++this.searches;
    if (!this.query) {
      this.hits = null;
      return this.show({}, true);
    }
    const { ids, texts } = this.data;
    const hits = new Map();
    let row = 0;
    const goOn = () => {
      if (mine !== this.searches) return;
      const until = performance.now() + 6;
      for (; row < ids.length && performance.now() < until; row++) {
        const lowered = (this.lowered[row] ??= texts[row].map((turn) => turn[1].toLowerCase()));
        const place = lowered.findIndex((text) => text.includes(this.query));
        if (place >= 0 || ids[row].toLowerCase() === this.query)
          hits.set(row, texts[row][Math.max(0, place)]?.[1] ?? "");
      }
      if (row < ids.length) return requestAnimationFrame(goOn);
      this.hits = hits;
      this.show({}, true);
    };
    goOn();
  }

  listen() {
    const search = document.getElementById("search");
    search.addEventListener("input", () => this.find(search.value));
    const repaint = () => {
      this.map.paint();
      this.render();
    };
    document.getElementById("theme").addEventListener("click", () => {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      repaint();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    addEventListener("popstate", () => this.follow());
    addEventListener("keydown", (event) => {
      if (event.key === "/" && document.activeElement !== search) {
        event.preventDefault();
        search.focus();
      }
      if (event.key === "Escape") {
        const { list, topic, end, dialogue } = this.view;
        this.show({ list, topic: dialogue && topic, end: dialogue && end });
      }
    });
  }
}

const page = new TopicsPage(JSON.parse(document.getElementById("data").textContent));
