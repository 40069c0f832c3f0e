"""Extraction of dialogue flows (Dialog2Flow, section 7).

Is the graph of clusters like the graph of annotated actions?

Utterances of each domain are clustered, those of each role for themselves, into as many clusters as
the role has actions; a cluster then stands for an action. The paper compares numbers of nodes
alone, which with the true number of clusters given only tells whether these are as uneven in size
as actions are. So v_measure and adjusted_rand say whether clusters hold the right utterances,
edge_f1 and transition_divergence whether what follows what is the same, and next_action_perplexity
whether a cluster foretells what is done next as well as an action does.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import log, log2, nextafter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import rel_entr
from sklearn.metrics import adjusted_rand_score, v_measure_score

from ...apps.flow.flow_clustering import cluster
from ...apps.flow.graph import (
    END,
    NOISE,
    FlowGraph,
    Pruning,
    State,
    TransitionModel,
    pruned,
    transition_graph,
    within,
)
from ...data import single_domain
from ...data.labels import unified_turn
from ...dialogue import Dialogue
from ...encoders import Encoder
from ...evaluation.results.rows import Row
from ...evaluation.tasks.sampling import fixed_sample, mean_interval, running_totals
from ...evaluation.tasks.task import CorpusPart, Problem, item_percentage
from ...evaluation.tasks.task_texts import TextVectors

NAME = "flow-extraction"
# of a domain; the smallest of the paper has 58, and in a small one no action is told from noise
FEWEST_DIALOGUES = 50
# of one role that are clustered: the distances of all pairs, twice 4 bytes, take 200 MB then
MOST_UTTERANCES = 5000
FOLDS = 5  # parts of the dialogues; each part is predicted from the others
# The least weights of nodes and edges in the official program. The paper's reference graphs have
# these thresholds.
OFFICIAL_NODES = 0.023
OFFICIAL_EDGES = 0.02
WHOLE = "all"  # the domain of dialogues that have none

_NO_SHARES = ("transition_divergence", "next_action_perplexity", "reference_next_action_perplexity")


class Utterance(NamedTuple):
    """A turn, and its action, from its dialogue acts and slots.

    See `hf_dialemb.data.labels.unified_turn`.
    """

    role: str
    text: str
    action: str


Flow = Sequence[Sequence[Utterance]]  # the dialogues of one domain, each as its annotated turns


def load_flows(part: CorpusPart) -> Problem:
    """Load the annotated dialogues of each domain, in an order that is not the corpus's.

    Turns without dialogue acts and slots are passed over. Where no dialogue has a domain, all are
    of one.
    """
    dialogues = part.dialogues()
    if not any(dialogue.domains for dialogue in dialogues):
        dialogues = [replace(dialogue, domains=(WHOLE,)) for dialogue in dialogues]
    flows = annotated_flows(single_domain(dialogues))
    large = {name: flow for name, flow in flows.items() if len(flow) >= FEWEST_DIALOGUES}
    if not large:
        raise part.error(
            f"got {max(map(len, flows.values()), default=0)} dialogues in the largest domain, "
            "expected at least "
            f"{FEWEST_DIALOGUES} of that domain alone that have dialogue acts or slots; annotate "
            "turns or add dialogues"
        )
    limited = _limited(large, part.limit)
    part.is_cut = limited != large
    kept = {name: _capped(flow) for name, flow in limited.items()}
    texts = sorted({turn.text for flow in kept.values() for turns in flow for turn in turns})
    config = {
        "texts": len(texts),
        "domains": {name: _sizes(flow) for name, flow in kept.items()},
        "smaller_domains": len(flows) - len(large),
        "fewest_dialogues": FEWEST_DIALOGUES,
        "most_utterances": MOST_UTTERANCES,
        "clustering": "agglomerative, cosine, average linkage, as many clusters as actions of the "
        "role",
        "noise": NOISE,
        "official_nodes": OFFICIAL_NODES,
        "official_edges": OFFICIAL_EDGES,
        "folds": FOLDS,
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        vectors = TextVectors(encoder, texts)
        results = {}
        for name, flow in kept.items():
            embeddings = vectors.of([turn.text for turns in flow for turn in turns])
            results[name] = compare_flow(flow, cluster_utterances(flow, embeddings))
        return _measurements(results)

    return Problem(config, measure)


def annotated_flows(dialogues: Iterable[Dialogue]) -> dict[str, list[list[Utterance]]]:
    """Collect the annotated turns of dialogues of one domain each, in an order of their own."""
    flows = defaultdict(list)
    for dialogue in dialogues:
        unified = map(unified_turn, dialogue.turns)
        turns = [
            Utterance(turn.role, turn.text, turn.action)
            for turn in unified
            if turn.action and turn.text
        ]
        if turns:
            flows[dialogue.domains[0]].append(turns)
    return {name: sorted(flows[name]) for name in sorted(flows)}


def cluster_utterances(flow: Flow, embeddings: NDArray[Any]) -> list[int]:
    """Cluster the utterances of each role by cosine into as many clusters as it has actions.

    The linkage is the average.
    """
    turns = [turn for dialogue in flow for turn in dialogue]
    vectors = np.array(embeddings, dtype=np.float64)
    clusters = np.zeros(len(turns), dtype=np.intp)
    for role in sorted({turn.role for turn in turns}):
        places = [place for place, turn in enumerate(turns) if turn.role == role]
        of_role = vectors[places]
        actions = {turns[place].action for place in places}
        # What has one vector is in one cluster, even where it does different things.
        number = min(len(actions), len({vector.tobytes() for vector in of_role}))
        clusters[places] = cluster(of_role, clusters=number).labels
    return clusters.tolist()


def compare_flow(flow: Flow, clusters: Sequence[int]) -> dict[str, float]:
    """Compare the graph of clusters with that of actions."""
    names = (f"cluster {cluster}" for cluster in clusters)
    return compared_with_actions(_states(flow, names), _states(flow))


def _measurements(results: Mapping[str, Mapping[str, float]]) -> list[Row]:
    figures: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for domain, values in results.items():
        for setting, prefix in (("", ""), ("official", "official_")):
            expected = values[f"{prefix}reference_nodes"]
            figures["size_difference", setting][domain] = (
                abs(values[f"{prefix}nodes"] - expected) / expected
            )
        for metric in ("v_measure", "adjusted_rand", "edge_f1", *_NO_SHARES):
            figures[metric, ""][domain] = values[metric]
    means = [
        _figure(metric, setting, [*by_domain.values()])
        for (metric, setting), by_domain in figures.items()
    ]
    return means + [
        _figure(metric, ", ".join(filter(None, (setting, domain))), [value])
        for (metric, setting), by_domain in figures.items()
        for domain, value in by_domain.items()
    ]


def _figure(metric: str, setting: str, values: Sequence[float]) -> Row:
    if metric not in _NO_SHARES:
        return item_percentage(NAME, metric, setting, values)
    mean = float(np.mean(values))
    return Row(task=NAME, metric=metric, setting=setting, mean=mean, interval=mean_interval(values))


def _states(flow: Flow, names: Iterable[str] | None = None) -> list[list[State]]:
    """Return the states of each dialogue.

    Roles with the actions, or with other names of them in order.
    """
    named = iter(
        names if names is not None else (turn.action for dialogue in flow for turn in dialogue)
    )
    return [[(turn.role, next(named)) for turn in dialogue] for dialogue in flow]


def _sizes(flow: Flow) -> dict[str, int]:
    states = Counter((turn.role, turn.action) for dialogue in flow for turn in dialogue)
    reference = transition_graph(_states(flow))
    nodes = {
        "nodes": len(without_noise(reference).states),
        "official_nodes": official_size(reference),
    }
    return {"dialogues": len(flow), "utterances": states.total(), "actions": len(states), **nodes}


def _limited(flows: Mapping[str, Flow], limit: int | None) -> dict[str, Flow]:
    """Keep whole domains in a random order up to the limit; of the first at least a sample."""
    if limit is None:
        return dict(flows)
    totals = running_totals({name: len(flow) for name, flow in flows.items()})
    first = next(iter(totals))
    kept = {name: flows[name] for name in sorted(flows) if totals[name] <= limit}
    return kept or {first: fixed_sample(flows[first], limit)}


def _capped(flow: Flow) -> Flow:
    """Keep the first dialogues of a random order, up to `MOST_UTTERANCES` of one role."""
    counts: Counter[str] = Counter()
    kept: list[int] = []
    for row in np.random.default_rng(0).permutation(len(flow)).tolist():
        counts.update(turn.role for turn in flow[row])
        if kept and max(counts.values()) > MOST_UTTERANCES:
            break
        kept.append(row)
    return [flow[row] for row in sorted(kept)]


def compared_with_actions(
    clusters: Sequence[Sequence[State]], actions: Sequence[Sequence[State]]
) -> dict[str, float]:
    """Compare the trajectories of dialogues by clusters with those by annotated actions.

    Agreement of clusters and actions is the mean over roles. Before transitions are compared,
    clusters are matched one to one with actions of their role; edge_f1 is of the graphs
    `without_noise`, the divergence of the whole ones.
    """
    pairs = _pairs_by_role(clusters, actions)
    reference = transition_graph(actions)
    induced = transition_graph(clusters)
    matched = {
        (role, name): (role, action)
        for role, names in pairs.items()
        for name, action in _matching(*names).items()
    }
    small = without_noise(induced)
    expected = without_noise(reference)
    return {
        "nodes": len(small.states),
        "reference_nodes": len(expected.states),
        "official_nodes": official_size(induced),
        "official_reference_nodes": official_size(reference),
        "v_measure": float(
            np.mean([v_measure_score(true, predicted) for predicted, true in pairs.values()])
        ),
        "adjusted_rand": float(
            np.mean([adjusted_rand_score(true, predicted) for predicted, true in pairs.values()])
        ),
        "edge_f1": edge_f1(renamed(small, matched), expected),
        "transition_divergence": transition_divergence(renamed(induced, matched), reference),
        "next_action_perplexity": next_action_perplexity(clusters, actions),
        "reference_next_action_perplexity": next_action_perplexity(actions, actions),
    }


def without_noise(graph: FlowGraph) -> FlowGraph:
    """Remove the states with at most `NOISE` of the most frequent count, and their edges."""
    most = max(graph.states.values(), default=1)
    kept = {state: count for state, count in graph.states.items() if count / most > NOISE}
    return FlowGraph(
        kept, {edge: count for edge, count in graph.edges.items() if within(edge, kept)}
    )


def official_size(graph: FlowGraph) -> int:
    """Count the nodes as the official program does, start and end included.

    It keeps states at the threshold.

    It fails where no path from start to end is left; here these two then remain.
    """
    return len(pruned(graph, Pruning(nextafter(OFFICIAL_NODES, 0.0), OFFICIAL_EDGES)).nodes)


def renamed(graph: FlowGraph, names: Mapping[State, State]) -> FlowGraph:
    """Rename states; those that get the same name are merged."""
    states: Counter[State] = Counter()
    edges: Counter[tuple[State, State]] = Counter()
    for state, count in graph.states.items():
        states[names.get(state, state)] += count
    for (source, target), count in graph.edges.items():
        edges[names.get(source, source), names.get(target, target)] += count
    return FlowGraph(dict(states), dict(edges))


def edge_f1(predicted: FlowGraph, reference: FlowGraph) -> float:
    """Compute the F1 of transitions, in ``[0, 1]``, over graphs with the same names.

    1 if neither has transitions.
    """
    first = Counter(predicted.edges)
    second = Counter(reference.edges)
    every = first.total() + second.total()
    return 2 * (first & second).total() / every if every else 1.0


def transition_divergence(predicted: FlowGraph, reference: FlowGraph) -> float:
    """Compute how differently states are followed in two graphs with the same names, in ``[0, 1]``.

    This is the Jensen-Shannon divergence of what follows a state, in bits, start included. States
    are weighted by the mean of their shares of both graphs. A state that a graph lacks counts 1.
    """
    graphs = predicted, reference
    totals = [sum(graph.edges.values()) for graph in graphs]
    divergence = 0.0
    for state in dict.fromkeys([*predicted.following, *reference.following]):
        following = [graph.following.get(state, Counter[State]()) for graph in graphs]
        weight = (
            sum(counts.total() / total for counts, total in zip(following, totals, strict=True)) / 2
        )
        if not all(following):
            divergence += weight
            continue
        targets = following[0] | following[1]
        shares = [
            np.array([counts[target] for target in targets]) / counts.total()
            for counts in following
        ]
        middle = (shares[0] + shares[1]) / 2
        divergence += (
            weight
            * sum(float(rel_entr(of_graph, middle).sum()) for of_graph in shares)
            / (2 * log(2))
        )
    return min(1.0, divergence)


def next_action_perplexity(
    states: Sequence[Sequence[State]], actions: Sequence[Sequence[State]]
) -> float:
    """Compute how well the state of a dialogue predicts the next annotated action.

    Lower is better, 1 is perfect.

    Each of `FOLDS` parts of the dialogues is predicted from the others by `TransitionModel`. The
    result is 2 to the mean of -log2 of the probability of what followed each utterance, the end
    included.
    """
    outcomes = [*dict.fromkeys(chain.from_iterable(actions)), END]
    pairs = zip(states, actions, strict=True)
    steps = [list(zip(own, [*true[1:], END], strict=True)) for own, true in pairs if own]
    folds = np.random.default_rng(0).permutation(len(steps)) % FOLDS
    model = TransitionModel(outcomes)
    bits = []
    model.count(chain.from_iterable(steps))
    for fold in range(FOLDS):
        held_out = [step for place in np.flatnonzero(folds == fold) for step in steps[place]]
        model.count(held_out, -1)
        bits += [-log2(model.probability((state,), action)) for state, action in held_out]
        model.count(held_out)
    return float(2 ** np.mean(bits))


def _pairs_by_role(
    clusters: Sequence[Sequence[State]], actions: Sequence[Sequence[State]]
) -> dict[str, tuple[list[str], list[str]]]:
    pairs: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for predicted, true in zip(clusters, actions, strict=True):
        for (role, name), (_, action) in zip(predicted, true, strict=True):
            pairs[role][0].append(name)
            pairs[role][1].append(action)
    return {role: pairs[role] for role in sorted(pairs)}


def _matching(clusters: Sequence[str], actions: Sequence[str]) -> dict[str, str]:
    """Match clusters one to one with actions so that most utterances agree.

    Some clusters may be left over.
    """
    # Ties are decided by where clusters first occur, so that their names do not matter.
    shared = Counter(zip(clusters, actions, strict=True))
    rows = list(dict.fromkeys(clusters))
    columns = sorted(set(actions))
    table = np.array([[shared[row, column] for column in columns] for row in rows])
    return {
        rows[row]: columns[column]
        for row, column in zip(*linear_sum_assignment(-table), strict=True)
    }
