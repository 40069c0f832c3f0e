"use strict";
// How conversations end, and how two sets differ.

const endMark = (place) => make("i", { class: `end-${place}` });

function endBar(data, ends) {
  const size = Math.max(1, ends.reduce((sum, count) => sum + count, 0));
  const label = ends.map((count, kind) => `${data.kinds[kind]} ${percent(count / size)}`);
  const parts = ends.map((count, kind) => {
    const title = `${data.kinds[kind]}: ${figure(count)}`;
    return make("i", { class: `end-${kind}`, title, style: `width: ${(100 * count) / size}%` });
  });
  return make("div.ends", { role: "img", "aria-label": label.join(", ") }, parts);
}

// Which colour stands for which way to end.
function endKey(data) {
  const parts = data.kinds.map((kind, place) => make("span", endMark(place), kind));
  return make("p.soft.key", parts);
}

function endsTable(data, link) {
  const head = data.kinds.map((kind, place) => make("th.figure", endMark(place), kind));
  const rows = data.topics.flatMap((topic) => {
    const share = (count) => ` ${topic.size ? percent(count / topic.size) : "–"}`;
    const cell = (count) => make("td.figure", figure(count), make("span.soft", share(count)));
    const place = { scope: "row", colspan: data.kinds.length };
    const name = make("th", place, link(topic.id), endBar(data, topic.ends));
    return [make("tr", name), make("tr", topic.ends.map(cell))];
  });
  return make("div.wide", make("table", make("thead", make("tr", head)), make("tbody", rows)));
}

// The findings of a comparison, and two bars a topic, as long as its shares.
function comparisonOf({ names, sizes, lines, rows }, link) {
  const shares = (row) => [row["share in first"], row["share in second"]];
  const most = Math.max(0.01, ...rows.flatMap(shares));
  const bar = (share, place) => {
    const width = `width: ${(100 * share) / most}%`;
    const text = make("span", `${names[place]}: ${percent(share)}`);
    return make("div", { class: `share of-${place}` }, make("i", { style: width }), text);
  };
  const pair = (row) => {
    const change = make("span", { class: `change ${row.change}` }, row.change || "no sure change");
    const worse = row["worse ends"].map((text) => make("span.soft", `worse ends: ${text}`));
    return make("div.pair", link(row.topic), change, shares(row).map(bar), worse);
  };
  return [
    make("h3", `${names[0]} and ${names[1]}`),
    soft(
      `${sizes.map(figure).join(" and ")} dialogues. A change is sure where p is at most 0.05`,
      " (Fisher's exact test, Holm's correction).",
    ),
    make("ul.findings", lines.map((line) => make("li", line))),
    ...rows.map(pair),
  ];
}
