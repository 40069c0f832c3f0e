"use strict";
// The tree of topics: those that are alike are joined, the more alike the nearer to their names. A branch can be folded
// into one row. `merges` are [branch, branch, distance]; topics are branches 0 to count - 1, what row r joins count + r.
function branchesOf(merges, count) {
  const found = Array.from({ length: count }, (_, number) => ({ number, topics: [number], height: 0, parts: null }));
  for (const [one, other, height] of merges) {
    const parts = [found[one], found[other]].sort((left, right) => Math.min(...left.topics) - Math.min(...right.topics));
    found.push({ number: found.length, topics: parts.flatMap((part) => part.topics), height, parts });
  }
  return found;
}

// The branches to fold at first, so that so many rows are left: those that the last joins join.
function foldedOf(branches, count, rows) {
  const open = new Set(branches.slice(Math.max(count, branches.length - rows + 1)).map((branch) => branch.number));
  return new Set(branches.filter((branch) => branch.parts && !open.has(branch.number)).map((branch) => branch.number));
}

// Draws it; `row(branch)` makes the button of a row, `knot(branch)` that of a join.
function drawnTree(branches, folded, row, knot) {
  const [HIGH, WIDE] = [30, 92];
  const root = branches.at(-1);
  // Distances lie close together: the order in which branches are joined is drawn, of those that are open.
  const order = branches.filter((branch) => branch.parts && (!folded.has(branch.number) || branch === root));
  const ranks = new Map(order.map((branch, rank) => [branch.number, rank]));
  const along = ({ number }) => 12 + (WIDE - 38) * (1 - (ranks.get(number) ?? -0.2 * order.length) / Math.max(1, order.length - 1));
  const [rows, knots, lines] = [[], [], []];
  const place = (branch) => {
    if (!branch.parts || folded.has(branch.number)) {
      rows.push(row(branch));
      const y = HIGH * (rows.length - 0.5);
      if (branch.parts) knots.push([branch, along(branch), y]);
      if (branch.parts) lines.push(`M${along(branch)} ${y}H${WIDE}`);
      return y;
    }
    const left = along(branch);
    const [top, bottom] = branch.parts.map(place);
    const [upper, lower] = branch.parts.map((part) => (part.parts ? along(part) : WIDE));
    lines.push(`M${upper} ${top}H${left}V${bottom}H${lower}`);
    knots.push([branch, left, (top + bottom) / 2]);
    return (top + bottom) / 2;
  };
  place(root);
  const [tree, svg, path, list] = ["div", "svg", "path", "ul"].map((name) =>
    name === "svg" || name === "path" ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name));
  tree.className = "tree";
  svg.setAttribute("width", WIDE);
  svg.setAttribute("height", HIGH * rows.length);
  path.setAttribute("d", lines.join(""));
  svg.append(path);
  list.append(...rows.map((button) => {
    const item = document.createElement("li");
    item.append(button);
    return item;
  }));
  tree.append(svg, list, ...knots.map(([branch, x, y]) => {
    const button = knot(branch);
    button.style.left = `${x}px`;
    button.style.top = `${y}px`;
    return button;
  }));
  return tree;
}
