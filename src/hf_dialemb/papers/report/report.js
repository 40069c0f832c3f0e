"use strict";
// The page's address says what is shown: #table=1&sort=tfidf&direction=descending&corpus=sgd&task=…&model=…
(() => {
  const filters = document.getElementById("filters");
  const shown = document.getElementById("shown");
  const NAMES = ["corpus", "task", "model"];
  const VIEW = ["table", "sort", "direction", ...NAMES];
  const suites = [...document.querySelectorAll(".suite")].map((section) => ({
    number: section.dataset.table,
    section,
    heads: [...section.querySelectorAll("thead th")],
    body: section.querySelector("tbody"),
    rows: [...section.querySelectorAll("tbody tr")],
  }));

  let current = read();

  function read() {
    return new URLSearchParams(location.hash.slice(1));
  }

  function change(values) {
    const view = { ...Object.fromEntries(current), ...values };
    current = new URLSearchParams(VIEW.filter((name) => view[name]).map((name) => [name, view[name]]));
    history.replaceState(null, "", "#" + current);
    apply(current);
  }

  function compare(column, numbers, sign) {
    return (one, other) => {
      const [left, right] = [one, other].map((row) => row.cells[column].dataset.value);
      if (left === undefined || right === undefined) return (left === undefined) - (right === undefined);
      return sign * (numbers ? left - right : left.localeCompare(right, "en", { numeric: true }));
    };
  }

  function sort(suite, view) {
    const wanted = !view.get("table") || view.get("table") === suite.number;
    const column = wanted ? suite.heads.findIndex((head) => head.dataset.key === view.get("sort")) : -1;
    const numbers = column >= 0 && suite.heads[column].dataset.order === "number";
    const direction = view.get("direction") === "descending" ? "descending" : "ascending";
    suite.heads.forEach((head, index) => head.setAttribute("aria-sort", index === column ? direction : "none"));
    const rows = [...suite.rows];
    if (column >= 0) rows.sort(compare(column, numbers, direction === "descending" ? -1 : 1));
    suite.body.append(...rows);
  }

  function filter(suite, view) {
    const parts = (view.get("model") || "").toLowerCase().split(",").map((part) => part.trim()).filter(Boolean);
    suite.heads.forEach((head, column) => {
      const name = (head.dataset.model || "").toLowerCase();
      const hidden = head.dataset.model !== undefined && parts.length > 0 && !parts.some((part) => name.includes(part));
      if (head.hasAttribute("data-hidden") === hidden) return;
      [head, ...suite.rows.map((row) => row.cells[column])].forEach((cell) => cell.toggleAttribute("data-hidden", hidden));
    });
    for (const row of suite.rows) {
      row.hidden = ["corpus", "task"].some((name) => view.get(name) && row.dataset[name] !== view.get(name));
    }
    suite.section.hidden = suite.rows.every((row) => row.hidden);
  }

  function apply(view) {
    for (const name of NAMES) {
      if (filters.elements[name].value !== (view.get(name) || "")) filters.elements[name].value = view.get(name) || "";
    }
    for (const suite of suites) {
      sort(suite, view);
      filter(suite, view);
    }
    const rows = suites.flatMap((suite) => suite.rows);
    shown.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  }

  for (const suite of suites) {
    for (const head of suite.heads) {
      const button = head.querySelector("button");
      button.disabled = false;
      button.addEventListener("click", () => {
        // Text begins at A, figures at the largest; a second click turns the order round.
        const first = head.dataset.order === "number" ? "descending" : "ascending";
        const turned = first === "ascending" ? "descending" : "ascending";
        const direction = head.getAttribute("aria-sort") === first ? turned : first;
        change({ table: suite.number, sort: head.dataset.key, direction });
      });
    }
  }
  filters.addEventListener("input", () => {
    change(Object.fromEntries(NAMES.map((name) => [name, filters.elements[name].value])));
  });
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.addEventListener("reset", (event) => {
    event.preventDefault();
    change(Object.fromEntries(VIEW.map((name) => [name, ""])));
  });
  addEventListener("hashchange", () => {
    const view = read();
    if (location.hash.length > 1 && !VIEW.some((name) => view.has(name))) return; // a link within the page
    current = view;
    apply(current);
  });
  filters.hidden = false;
  apply(current);
})();
