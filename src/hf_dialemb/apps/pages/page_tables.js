"use strict";
// Views that are tables: all states and why there are so many, two sets of dialogues compared.

// Columns are [name, value, show]; numbers stand on the right. Rows keep their order while no column is sorted by. A
// click on a head sorts, a second one turns the order round.
function table(columns, rows) {
  const body = make("tbody");
  const kindOf = (value) => (typeof value(rows[0]) === "number" ? ".figure" : "");
  const cell = (row, [, value, show = String]) => make(`td${kindOf(value)}`, { dir: "auto" }, show(value(row), row));
  const fill = () => body.replaceChildren(...rows.map((row) => make("tr", columns.map((column) => cell(row, column)))));
  const sort = (head, value) => {
    const falls = head.ariaSort ? head.ariaSort === "ascending" : kindOf(value) !== "";
    for (const other of head.parentNode.children) other.ariaSort = null;
    head.ariaSort = falls ? "descending" : "ascending";
    const compare = (one, other) => (kindOf(value) ? one - other : one.localeCompare(other, "en", { numeric: true }));
    rows.sort((one, other) => (falls ? -1 : 1) * compare(value(one), value(other)));
    fill();
  };
  const heads = columns.map(([name, value]) => {
    const head = make(`th${kindOf(value)}`, { scope: "col" });
    head.append(make("button", { click: () => sort(head, value) }, name));
    return head;
  });
  fill();
  const scrolled = { tabindex: 0, role: "region", "aria-label": "Table" };
  return make("div.scroll", scrolled, make("table", make("thead", make("tr", heads)), body));
}

function drawClusters(page, place) {
  const { flow } = page;
  const rows = flow.states.map((state, number) => ({ ...state, number }));
  rows.sort((one, other) => other.size - one.size);
  const columns = [
    ["State", (row) => row.name, (name, row) => stateLink(page, row.number)],
    ["Id", (row) => row.id, (id) => make("span.id", id)],
    ["Speaker", (row) => row.role, (role) => roleTag(flow, role)],
    ["Utterances", (row) => row.size, figure],
    ["In dialogues", (row) => row.through / flow.counts.dialogues, percent],
    ["Typical", (row) => row.phrases.slice(0, 4).join(" · ")],
  ];
  const choices = flow.choices.map(([role, sentence]) => make("p.soft", roleTag(flow, role), ` ${sentence}`));
  place.replaceChildren(...choices, table(columns, rows));
}

const NONE_KNOWN = "–"; // where one set never comes to the state, nothing can be compared

function printedChance(p, { difference }) {
  if (difference === null) return NONE_KNOWN;
  return p < 0.001 ? "< 0.001" : p.toFixed(3);
}

function shareIn(row, set) {
  return row.shares[set] === null ? NONE_KNOWN : percent(row.shares[set]);
}

function drawComparison(page, place) {
  const { flow } = page;
  const { names, dialogues, findings, edges } = flow.comparison;
  const open = ({ key }) => page.show({ tab: "map", edge: key });
  const shares = names.flatMap((name, set) => [
    [name, (row) => row.shares[set] ?? -1, (share, row) => shareIn(row, set)],
    [`${name}, times`, (row) => row.counts[set], figure],
  ]);
  const columns = [
    [
      "Transition",
      (row) => stepName(flow, flow.byKey.get(row.key)),
      (name, row) => make("button.link", { click: () => open(row) }, name),
    ],
    ...shares,
    ["Difference", (row) => Math.abs(row.difference ?? -1), (size, row) => points(row.difference)],
    ["p", (row) => row.p, printedChance],
  ];
  const explanation =
    "Shares are of all times that something follows the first state, differences in percentage points; p is " +
    "corrected for the number of transitions; a dash stands where one set never comes to the first state. ";
  place.replaceChildren(
    make("h2", names.map(isolated).join(" and ")),
    make("ul.findings", findings.map((text) => make("li", text))),
    make("p.soft", explanation, `${dialogues.map((count) => counted(count, "dialogue")).join(" and ")}.`),
    table(columns, [...edges]),
  );
}

function points(difference) {
  if (difference === null) return NONE_KNOWN;
  const rounded = Math.round(100 * difference);
  return rounded ? `${rounded > 0 ? "+" : "−"}${Math.abs(rounded)}` : "0";
}
