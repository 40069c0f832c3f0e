"use strict";
// What a person changes in topics: entries of a file of edits, which the next run replays. They are kept until saved.
function changesOf(data, make, changed) {
  const { topics, ids } = data;
  const made = [];
  // A topic's number may stand for another next time: a dialogue that is on it goes along.
  const seen = (...numbers) => Object.fromEntries(numbers.filter((number) => topics[number].examples.length).map((number) => [topics[number].id, ids[topics[number].examples[0]]]));
  const add = (entry) => {
    made.push(entry);
    changed();
  };
  const text = () => [...data.edits, ...made].map((entry) => `- ${JSON.stringify(entry)}\n`).join("");
  const save = () => make("a", { href: URL.createObjectURL(new Blob([text()], { type: "text/yaml" })), download: "edits.yaml" }).click();
  const button = (name, click) => make("button", { type: "button", class: "button", click }, name);
  const field = (name, ...parts) => make("label", { class: "field" }, make("span", {}, name), ...parts);
  const choice = (numbers) => make("select", {}, numbers.map((number) => make("option", { value: number }, topics[number].name)));
  const others = (number) => [...topics.keys()].filter((other) => other !== number && topics[other].id !== "none");
  const wish = (entry) => Object.entries(entry).filter(([key]) => key !== "seen").map(([key, value]) => `${key} ${[value].flat().join(", ")}`).join(" · ");

  function note() {
    if (!made.length) return [];
    return [make("div", { class: "changes" }, make("b", {}, made.length === 1 ? "1 change, not saved yet" : `${made.length} changes, not saved yet`),
      make("ul", {}, made.map((entry) => make("li", {}, wish(entry)))),
      make("div", { class: "ways" }, button("Save edits.yaml", save), button("Undo", () => (made.pop(), changed()))),
      make("p", { class: "soft" }, "Put the file into this page's folder and run the command again: every run replays it."))];
  }

  function ofTopic(number) {
    if (topics[number].id === "none") return [];
    const { id, name } = topics[number];
    const named = make("input", { value: name });
    const [parts, rest] = [make("input", { type: "number", min: 2, value: 2 }), others(number)];
    const joined = choice(rest);
    const row = rest.length ? [field("The same as", joined, button("Merge", () => add({ merge: [id, topics[joined.value].id], seen: seen(number, Number(joined.value)) })))] : [];
    return [make("details", { class: "edit" }, make("summary", {}, "Change this topic"),
      field("Name", named, button("Rename", () => add({ rename: id, name: named.value, seen: seen(number) }))), ...row,
      field("Parts", parts, button("Split", () => add({ split: id, into: Number(parts.value), seen: seen(number) }))),
      button("Delete", () => add({ delete: id, seen: seen(number) })))];
  }

  function ofDialogue(row) {
    const target = choice(others(data.labels[row]));
    if (!target.options.length) return [];
    const move = () => add({ move: ids[row], to: topics[target.value].id, seen: seen(Number(target.value)) });
    return [make("details", { class: "edit" }, make("summary", {}, "Change its topic"), field("Belongs to", target, button("Move", move)))];
  }
  return { made, text, note, ofTopic, ofDialogue };
}

// How conversations end, and how two sets differ.
function tablesOf(data, make, figures, topicLink) {
  const percent = (share) => `${(100 * share).toFixed(share && share < 0.01 ? 1 : 0)} %`;
  const rate = (share, place) => share.counts[place] / Math.max(1, share.sizes[place]);

  function endBar(ends) {
    const size = Math.max(1, ends.reduce((sum, count) => sum + count, 0));
    return make("div", { class: "ends", role: "img", "aria-label": ends.map((count, kind) => `${data.kinds[kind]} ${percent(count / size)}`).join(", ") },
      ends.map((count, kind) => make("i", { class: `end-${kind}`, share: `${(100 * count) / size}%`, title: `${data.kinds[kind]}: ${figures.format(count)}` })));
  }

  const key = () => make("p", { class: "soft key" }, data.kinds.map((kind, place) => make("span", {}, make("i", { class: `end-${place}` }), kind)));

  function ends() {
    const head = data.kinds.map((kind, place) => make("th", { class: "figure" }, make("i", { class: `end-${place}` }), kind));
    const rows = data.topics.map((topic, number) => {
      const cells = topic.ends.map((count) => make("td", { class: "figure" }, `${figures.format(count)}`, make("span", { class: "soft" }, ` ${topic.size ? percent(count / topic.size) : "–"}`)));
      return [make("tr", {}, make("th", { scope: "row", colspan: data.kinds.length }, topicLink(number), endBar(topic.ends))), make("tr", {}, cells)];
    });
    return [make("div", { class: "wide" }, make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows.flat())))];
  }

  // Two bars a topic, as long as its shares, with the bounds between which the shares lie at 95 %.
  function pair(row, names, most) {
    const bar = (place) => {
      const [low, high] = row.intervals[place].map((bound) => (100 * bound) / most);
      const line = make("s", {});
      line.style.left = `${low}%`;
      line.style.width = `${high - low}%`;
      return make("div", { class: `share of-${place}` }, make("i", { share: `${(100 * rate(row.share, place)) / most}%` }), line,
        make("span", {}, `${names[place]}: ${percent(rate(row.share, place))} (${percent(row.intervals[place][0])}–${percent(row.intervals[place][1])})`));
    };
    const number = data.topics.findIndex((topic) => topic.id === row.topic);
    return make("div", { class: "pair" }, topicLink(number), make("span", { class: `change ${row.kind}` }, row.kind || "no sure change"), bar(0), bar(1),
      ...row.worse.map((text) => make("span", { class: "soft" }, `worse ends: ${text}`)));
  }

  function comparison(own) {
    const most = Math.max(0.01, ...own.rows.flatMap((row) => row.intervals.map((bounds) => bounds[1])));
    return [make("h3", {}, `${own.names[0]} and ${own.names[1]}`),
      make("p", { class: "soft" }, `${own.sizes.map((size) => figures.format(size)).join(" and ")} dialogues. A change is sure where p is at most 0.05 (Fisher's exact test, Holm's correction). Lines show where a share lies at 95 %.`),
      make("ul", { class: "findings" }, own.lines.map((line) => make("li", {}, line))), ...own.rows.map((row) => pair(row, own.names, most))];
  }
  return { ends, endBar, key, comparisons: () => data.comparisons.flatMap(comparison) };
}
