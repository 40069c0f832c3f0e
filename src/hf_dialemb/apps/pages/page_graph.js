"use strict";
// The graph of a flow as numbers: states are 0 to C - 1, then START, then END. Nothing here touches the page.

function readFlow(record) {
  const flow = { ...record, start: record.states.length, end: record.states.length + 1 };
  flow.most = flow.states.reduce((most, state) => Math.max(most, state.size), 1);
  flow.ids = [...flow.states.map((state) => state.id), "[start]", "[end]"];
  flow.numbers = new Map(flow.ids.map((id, number) => [id, number]));
  flow.edges = record.edges.map(([source, target, count]) => ({
    source,
    target,
    count,
    key: keyOf(flow, source, target),
  }));
  flow.byKey = new Map(flow.edges.map((edge) => [edge.key, edge]));
  // Mostly the target is said earlier in a dialogue than the source.
  for (const edge of flow.edges) edge.late = flow.states[edge.target]?.when < flow.states[edge.source]?.when;
  const out = new Map();
  for (const edge of flow.edges) out.set(edge.source, (out.get(edge.source) || 0) + edge.count);
  // What a person reads: of all times that the source occurs, how often the target comes next.
  for (const edge of flow.edges) edge.share = edge.count / out.get(edge.source);
  flow.byDialogue = new Map(flow.dialogues.map((dialogue) => [dialogue.id, dialogue]));
  return flow;
}

function keyOf(flow, source, target) {
  return `${flow.ids[source]}>${flow.ids[target]}`;
}

const figures = new Intl.NumberFormat("en");

function figure(number) {
  return figures.format(number);
}

function nameOf(flow, number) {
  if (number === flow.start) return "Start";
  return number === flow.end ? "End" : flow.states[number].name;
}

// A name within a sentence: the direction of its writing ends with it.
function isolated(name) {
  return `\u2068${name}\u2069`;
}

function stepName(flow, { source, target }) {
  return `${isolated(nameOf(flow, source))} → ${isolated(nameOf(flow, target))}`;
}

// The share of each edge's count in that of the most frequent edge from the same state.
function weigh(edges) {
  const most = new Map();
  for (const { source, count } of edges) most.set(source, Math.max(most.get(source) || 0, count));
  return new Map(edges.map((edge) => [edge, edge.count / most.get(edge.source)]));
}

function reached(first, edges, from, to) {
  const following = grouped(edges, from);
  const found = new Set([first]);
  // A set that grows while it is walked: each state comes up once.
  for (const number of found) for (const edge of following.get(number) || []) found.add(edge[to]);
  return found;
}

// Leaves out what is rare, and what then lies on no way from start to end: the same as `pruned` in graph.py.
function prune(flow, setting) {
  const weights = weigh(flow.edges);
  const lies = (number, kept) => number >= flow.start || kept.has(number);
  const within = (edge, kept) => lies(edge.source, kept) && lies(edge.target, kept);
  let edges = flow.edges;
  let kept = new Set();
  flow.states.forEach((state, number) => state.size / flow.most > setting.nodes && kept.add(number));
  for (const threshold of [0, setting.edges]) {
    edges = flow.edges.filter((edge) => weights.get(edge) >= threshold);
    const ways = edges.filter((edge) => edge.source !== edge.target && within(edge, kept));
    const forth = reached(flow.start, ways, "source", "target");
    const back = reached(flow.end, ways, "target", "source");
    kept = new Set([...kept].filter((number) => forth.has(number) && back.has(number)));
  }
  edges = edges.filter((edge) => within(edge, kept));
  const shown = weigh(edges);
  return { states: [...kept], edges: edges.map((edge) => ({ ...edge, weight: shown.get(edge) })) };
}

function roleOf(flow, number) {
  return number < flow.start ? flow.states[number].role : "";
}

function grouped(edges, end) {
  const groups = new Map();
  for (const edge of edges) {
    if (!groups.has(edge[end])) groups.set(edge[end], []);
    groups.get(edge[end]).push(edge);
  }
  return groups;
}
