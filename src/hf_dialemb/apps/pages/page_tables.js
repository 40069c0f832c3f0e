"use strict";
// Views that are tables: all states and why there are so many, two sets of dialogues compared, how it was made.

// Columns are {name, value, show?, figure?}; rows keep their order while no column is sorted by. A click on a head
// sorts, a second one turns the order round.
function table(columns, rows, sorted, descending) {
  const body = make("tbody");
  const heads = columns.map((column) => make("th", { scope: "col", class: column.figure ? "figure" : "" }));
  let current = { column: sorted, descending };
  const fill = () => {
    const { value } = columns[current.column] || { value: () => 0 };
    const sign = current.descending ? -1 : 1;
    const order = [...rows].sort(
      (one, other) =>
        sign *
        (typeof value(one) === "number"
          ? value(one) - value(other)
          : value(one).localeCompare(value(other), "en", { numeric: true })),
    );
    body.replaceChildren(
      ...order.map((row) =>
        make(
          "tr",
          {},
          columns.map((column) =>
            make(
              "td",
              { class: column.figure ? "figure" : "", dir: column.figure ? undefined : "auto" },
              column.show ? column.show(row) : String(column.value(row)),
            ),
          ),
        ),
      ),
    );
    heads.forEach((head, index) =>
      head.setAttribute(
        "aria-sort",
        index !== current.column ? "none" : current.descending ? "descending" : "ascending",
      ),
    );
  };
  columns.forEach((column, index) =>
    heads[index].append(
      make(
        "button",
        {
          click: () => {
            current = {
              column: index,
              descending: current.column === index ? !current.descending : Boolean(column.figure),
            };
            fill();
          },
        },
        column.name,
      ),
    ),
  );
  fill();
  return make(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table" },
    make("table", {}, make("thead", {}, make("tr", {}, heads)), body),
  );
}

function open(page, view) {
  page.show({ tab: "map", ...view });
  page.focusPanel();
}

function drawClusters(page, place) {
  const { flow } = page;
  const shown = new Set(page.graph.states);
  const rows = flow.states.map((state, number) => ({ ...state, number }));
  const columns = [
    {
      name: "State",
      value: (row) => row.name,
      show: (row) => make("button", { class: "link", click: () => open(page, { state: row.id }) }, row.name),
    },
    { name: "Id", value: (row) => row.id, show: (row) => make("span", { class: "id" }, row.id) },
    { name: "Speaker", value: (row) => row.role, show: (row) => roleTag(flow, row.role) },
    { name: "Utterances", value: (row) => row.size, show: (row) => figure(row.size), figure: true },
    {
      name: "Different",
      value: (row) => row.distinct,
      show: (row) => figure(row.distinct),
      figure: true,
    },
    {
      name: "In dialogues",
      value: (row) => row.through / flow.counts.dialogues,
      show: (row) => percent(row.through / flow.counts.dialogues),
      figure: true,
    },
    { name: "On the map", value: (row) => (shown.has(row.number) ? "yes" : "no") },
    { name: "Typical", value: (row) => typical(flow, row) },
  ];
  place.replaceChildren(
    ...flow.choices.map(([role, sentence]) => make("p", { class: "soft" }, roleTag(flow, role), ` ${sentence}`)),
    table(columns, rows, 3, true),
  );
}

function typical(flow, state) {
  if (state.phrases.length) return state.phrases.slice(0, 4).join(" · ");
  return state.examples.length ? cutText(flow.texts[state.examples[0]], 90) : "";
}

const NONE_KNOWN = "–"; // where one set never comes to the state, nothing can be compared

function printedChance({ p, difference }) {
  if (difference === null) return NONE_KNOWN;
  return p < 0.001 ? "< 0.001" : p.toFixed(3);
}

function shareIn(row, set) {
  return row.shares[set] === null ? NONE_KNOWN : percent(row.shares[set]);
}

function drawComparison(page, place) {
  const { comparison } = page.flow;
  const [one, other] = comparison.names;
  const link = (row) =>
    make("button", { class: "link", click: () => open(page, { edge: row.key }) }, stepName(page.flow, row));
  const columns = [
    {
      name: "Transition",
      value: (row) => stepName(page.flow, row),
      show: link,
    },
    ...[one, other].flatMap((name, index) => [
      { name, value: (row) => row.shares[index] ?? -1, show: (row) => shareIn(row, index), figure: true },
      {
        name: `${name}, times`,
        value: (row) => row.counts[index],
        show: (row) => figure(row.counts[index]),
        figure: true,
      },
    ]),
    {
      name: "Difference",
      value: (row) => (row.difference === null ? -1 : Math.abs(row.difference)),
      show: (row) => points(row.difference),
      figure: true,
    },
    { name: "p", value: (row) => row.p, show: printedChance, figure: true },
  ];
  place.replaceChildren(
    make("h2", {}, `${isolated(one)} and ${isolated(other)}`),
    ...(comparison.findings.length
      ? [
          make(
            "ul",
            { class: "findings" },
            comparison.findings.map((said) => make("li", {}, said)),
          ),
        ]
      : []),
    make(
      "p",
      { class: "soft" },
      "Shares are of all times that something follows the first state, differences in percentage points; p is " +
        "corrected for the number of transitions; a dash stands where one set never comes to the first state. " +
        `${comparison.dialogues.map((count) => counted(count, "dialogue")).join(" and ")}.`,
    ),
    table(columns, [...page.differences.values()], -1, false),
  );
}

function points(difference) {
  if (difference === null) return NONE_KNOWN;
  const rounded = Math.round(100 * difference);
  return rounded ? `${rounded > 0 ? "+" : "−"}${Math.abs(rounded)}` : "0";
}

function drawAbout(page, place) {
  const { flow } = page;
  place.replaceChildren(
    make("h2", {}, "How this was made"),
    make(
      "dl",
      {},
      flow.settings.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]),
    ),
    ...[sampleNote(flow)].filter(Boolean),
    make("h2", {}, "How to read the map"),
    readingHelp(page),
    make("h2", {}, "Keys"),
    keysHelp(),
  );
}
