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

function endsTable(data, link) {
  const head = data.kinds.map((kind, place) => make("th.figure", endMark(place), kind));
  const rows = data.topics.flatMap((topic) => {
    const share = (count) => ` ${topic.size ? percent(count / topic.size) : "–"}`;
    const cell = (count, kind) => {
      const opened = count ? link(topic.id, figure(count), data.kinds[kind]) : "0";
      return make("td.figure", opened, make("span.soft", share(count)));
    };
    const place = { scope: "row", colspan: data.kinds.length };
    const name = make("th", place, link(topic.id), endBar(data, topic.ends));
    return [make("tr", name), make("tr", topic.ends.map(cell))];
  });
  return make("div.wide", make("table", make("thead", make("tr", head)), make("tbody", rows)));
}

// How sets of dialogues end, and then each two sets by their topics.
function comparisonsOf(data, link) {
  const ends = make("ul.findings", data.compared_ends.map((line) => make("li", line)));
  return [ends, ...data.comparisons.flatMap((own) => comparisonOf(own, link))];
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
    soft(`${sizes.map(figure).join(" and ")} dialogues; changes are sure where p is at most 0.05.`),
    make("ul.findings", lines.map((line) => make("li", line))),
    ...rows.map(pair),
  ];
}
