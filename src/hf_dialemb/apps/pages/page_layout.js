"use strict";
// A layered layout: states in rows from start to end, few crossings, heavy transitions straight. Nothing here touches
// the page. The steps are those of Sugiyama, Tagawa and Toda (1981).

const BESIDE = 22;
const PASSING = 14;
const SWEEPS = 10;
const PULLS = 16;
const MOSTLY = 0.5; // what follows a state so often is put below it
const NONE = [];

// Takes nodes {number, width, height} and edges {source, target, count, key}; gives where each node's middle is, and
// the points that each edge leads through. A row has at most so many states as `widest` says.
function layOut(nodes, edges, start, end, widest) {
  const moves = edges.filter((edge) => edge.source !== edge.target);
  const ranks = rankAll(
    nodes.map((node) => node.number),
    moves,
    start,
    end,
    widest,
  );
  const { layers, chains } = layersOf(nodes, moves, ranks);
  orderLayers(layers);
  placeLayers(layers);
  const heights = stackLayers(layers);
  const places = new Map();
  for (const layer of layers) for (const cell of layer) if (cell.number >= 0) places.set(cell.number, cell);
  return { places, routes: routeAll(chains, layers), ...extent(layers, heights) };
}

function extent(layers, height) {
  const cells = layers.flat();
  const left = Math.min(...layers.map((layer) => layer[0].x - layer[0].width / 2));
  const right = Math.max(...layers.map((layer) => layer.at(-1).x + layer.at(-1).width / 2));
  return { left, width: cells.length ? right - left : 0, height };
}

// Rows: a state lies below what it follows most often, and above what mostly follows it; other transitions find their
// direction by that.
function rankAll(numbers, edges, start, end, widest) {
  const { before, after } = backbone(edges, end);
  const ranks = new Map();
  const rank = (number) => {
    if (!ranks.has(number)) {
      const least = number === start ? 0 : 1;
      ranks.set(
        number,
        (before.get(number) || []).reduce((most, other) => Math.max(most, rank(other) + 1), least),
      );
    }
    return ranks.get(number);
  };
  numbers.forEach(rank);
  const inner = numbers.filter((number) => number !== start && number !== end);
  shorten(inner, edges, ranks, before, after);
  ranks.set(end, splitRows(inner, ranks, widest) + 1);
  return ranks;
}

// Numbers rows without gaps; one that is too wide to be read becomes several. Returns how many there are.
function splitRows(numbers, ranks, widest) {
  const rows = new Map();
  for (const number of numbers) rows.set(ranks.get(number), [...(rows.get(ranks.get(number)) || []), number]);
  let row = 0;
  for (const rank of [...rows.keys()].sort((one, other) => one - other)) {
    const members = rows.get(rank);
    const parts = Math.ceil(members.length / widest);
    members.forEach((number, place) => ranks.set(number, row + 1 + Math.floor((place * parts) / members.length)));
    row += parts;
  }
  return row;
}

function backbone(edges, end) {
  const heavy = [...edges].sort(
    (one, other) => one.late - other.late || other.count - one.count || one.source - other.source,
  );
  const into = new Set();
  const before = new Map();
  const after = new Map();
  const leads = (from, to) => {
    const waiting = [from];
    const seen = new Set(waiting);
    while (waiting.length) {
      const number = waiting.pop();
      if (number === to) return true;
      for (const next of after.get(number) || []) if (!seen.has(next)) (seen.add(next), waiting.push(next));
    }
    return false;
  };
  for (const { source, target, share } of heavy) {
    const wanted = !into.has(target) || share >= MOSTLY;
    if (!wanted || target === end || leads(target, source)) continue;
    into.add(target);
    before.set(target, [...(before.get(target) || []), source]);
    after.set(source, [...(after.get(source) || []), target]);
  }
  return { before, after };
}

// Moves states up or down where that makes transitions shorter, or lets fewer of them run back.
function shorten(numbers, edges, ranks, before, after) {
  const touching = new Map(numbers.map((number) => [number, []]));
  for (const edge of edges) {
    touching.get(edge.source)?.push(edge);
    touching.get(edge.target)?.push(edge);
  }
  const last = Math.max(1, ...numbers.map((number) => ranks.get(number)));
  const cost = (number, rank) =>
    touching.get(number).reduce((sum, { source, target, count }) => {
      const span = (target === number ? rank : ranks.get(target)) - (source === number ? rank : ranks.get(source));
      return sum + count * (span > 0 ? span : span === 0 ? 4 : 3 - span);
    }, 0);
  for (let pass = 0; pass < 6; pass++) {
    for (const number of numbers) {
      const first = (before.get(number) || []).reduce((most, other) => Math.max(most, ranks.get(other) + 1), 1);
      const final = (after.get(number) || []).reduce((least, other) => Math.min(least, ranks.get(other) - 1), last);
      let best = ranks.get(number);
      let least = cost(number, best);
      for (let rank = first; rank <= final; rank++) {
        const here = cost(number, rank);
        if (here < least) [best, least] = [rank, here];
      }
      ranks.set(number, best);
    }
  }
}

// Cells of rows: states, and the places where longer transitions pass a row.
function layersOf(nodes, edges, ranks) {
  const layers = Array.from({ length: Math.max(...ranks.values()) + 1 }, () => []);
  const cells = new Map();
  const add = (cell) => (layers[cell.row].push(cell), cell);
  for (const node of nodes) cells.set(node.number, add({ ...node, row: ranks.get(node.number), up: [], down: [] }));
  const most = edges.reduce((largest, edge) => Math.max(largest, edge.count), 1);
  const chains = edges.map((edge) => {
    const [source, target] = [cells.get(edge.source), cells.get(edge.target)];
    const back = source.row > target.row;
    const [top, bottom] = back ? [target, source] : [source, target];
    const chain = [top];
    const weight = 0.2 + Math.sqrt(edge.count / most);
    for (let row = top.row + 1; row < bottom.row; row++) {
      chain.push(add({ number: -1, width: 4, height: 0, row, up: [], down: [] }));
    }
    chain.push(bottom);
    if (top.row !== bottom.row) chain.slice(1).forEach((cell, index) => link(chain[index], cell, weight));
    return { edge, chain, back, flat: source.row === target.row };
  });
  return { layers, chains };
}

function link(above, below, weight) {
  // Long transitions are kept straight before short ones.
  const pull = weight * (above.number < 0 && below.number < 0 ? 8 : above.number < 0 || below.number < 0 ? 2 : 1);
  above.down.push({ cell: below, pull });
  below.up.push({ cell: above, pull });
}

// Each row in the order of its neighbours above, then below, and so on: few crossings.
function orderLayers(layers) {
  number(layers);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) sortLayer(layer, down ? "up" : "down");
  }
}

function number(layers) {
  layers.forEach((layer) => layer.forEach((cell, place) => (cell.place = place)));
}

function sortLayer(layer, side) {
  for (const cell of layer) {
    let sum = 0;
    let pulls = 0;
    for (const { cell: other, pull } of cell[side]) {
      sum += pull * other.place;
      pulls += pull;
    }
    cell.wanted = pulls ? sum / pulls : cell.place;
  }
  layer.sort((one, other) => one.wanted - other.wanted || one.place - other.place);
  layer.forEach((cell, place) => (cell.place = place));
}

function apart(left, right) {
  const gap = left.number < 0 && right.number < 0 ? PASSING : BESIDE;
  return (left.width + right.width) / 2 + gap;
}

function placeLayers(layers) {
  for (const layer of layers) {
    let x = 0;
    layer.forEach((cell, index) => (cell.x = index ? (x += apart(layer[index - 1], cell)) : 0));
    layer.forEach((cell) => (cell.x -= x / 2));
  }
  for (let pull = 0; pull < PULLS; pull++) {
    const down = pull % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      settle(layer, pull >= PULLS - 3 || !down, pull >= PULLS - 3 || down);
    }
  }
}

// Puts each cell of a row as near as it can be to where its neighbours are, in order and apart: least squares, solved
// exactly by pooling those that push each other.
function settle(layer, byLower, byUpper) {
  const blocks = [];
  let offset = 0;
  layer.forEach((cell, index) => {
    if (index) offset += apart(layer[index - 1], cell);
    cell.offset = offset;
    let weight = 0;
    let sum = 0;
    for (const links of [byUpper ? cell.up : NONE, byLower ? cell.down : NONE]) {
      for (const { cell: other, pull } of links) {
        sum += pull * other.x;
        weight += pull;
      }
    }
    blocks.push({ value: (weight ? sum / weight : cell.x) - offset, weight: weight || 0.01, cells: [cell] });
    while (blocks.length > 1 && blocks.at(-2).value > blocks.at(-1).value) {
      const right = blocks.pop();
      const left = blocks.at(-1);
      const both = left.weight + right.weight;
      left.value = (left.value * left.weight + right.value * right.weight) / both;
      left.weight = both;
      left.cells = left.cells.concat(right.cells);
    }
  });
  for (const block of blocks) for (const cell of block.cells) cell.x = block.value + cell.offset;
}

// Rows below each other; the more leads from one to the next, the more room between them.
function stackLayers(layers) {
  let y = 0;
  for (const layer of layers) {
    const height = layer.reduce((most, cell) => Math.max(most, cell.height), 0);
    for (const cell of layer) Object.assign(cell, { y: y + height / 2, top: y, bottom: y + height });
    const links = layer.reduce((sum, cell) => sum + cell.down.length, 0);
    y += height + Math.min(92, 38 + 1.3 * links);
  }
  return y;
}

// Where each edge leaves and enters a state: side by side, in the order of where they lead to.
function routeAll(chains, layers) {
  const ports = new Map();
  const ask = (cell, side, toward, of) => {
    if (!ports.has(cell)) ports.set(cell, { top: [], bottom: [] });
    ports.get(cell)[side].push({ toward, of });
  };
  chains.forEach((route) => {
    const { chain, flat } = route;
    ask(chain[0], "bottom", chain[1].x, [route, 0]);
    ask(chain.at(-1), flat ? "bottom" : "top", chain.at(-2).x, [route, 1]);
  });
  const found = new Map(chains.map((route) => [route, []]));
  for (const [cell, sides] of ports) {
    for (const side of Object.values(sides)) {
      side.sort((one, other) => one.toward - other.toward);
      const gap = Math.min(16, (cell.width * 0.7) / Math.max(1, side.length - 1));
      side.forEach(({ of: [route, end] }, index) => {
        found.get(route)[end] = cell.x + (index - (side.length - 1) / 2) * gap;
      });
    }
  }
  return new Map(chains.map((route) => [route.edge.key, pointsOf(route, found.get(route), layers)]));
}

// Straight past the rows between, so that no state is crossed; curves in the room between rows.
function pointsOf({ chain, back, flat }, [first, last], layers) {
  const edges = (cell) => [cell.y - cell.height / 2, cell.y + cell.height / 2];
  const points = [[first, edges(chain[0])[1]]];
  for (const cell of chain.slice(1, -1))
    points.push([cell.x, layers[cell.row][0].top], [cell.x, layers[cell.row][0].bottom]);
  points.push([last, edges(chain.at(-1))[flat ? 1 : 0]]);
  return { points: back ? points.reverse() : points, back, flat };
}
