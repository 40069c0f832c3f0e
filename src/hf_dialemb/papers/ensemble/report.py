"""The results of multi-granularity training: the paper's tables beside ours, and what is more than chance.

The single model, the ensembles and each granularity rank the same candidate sets of the test split. Probes and
fine-tuning (Tables 4 to 6) read the context vectors of those that embed. ``results.json`` keeps everything, and
nothing is measured twice for the same checkpoints.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from ...corpora.examples import read_candidates
from ...evaluation.results.rows import Results, Row, describe_run, rows_of, write_results
from ...evaluation.run import command_line
from ...evaluation.tasks import next_utterance
from ...evaluation.tasks.task import percentage
from ...methods.ranking import LoadedRanker, load_ranker
from ...runs.files import write_text_atomically
from ...runs.folder import BASELINE, CHECKPOINTS, GRANULARITIES, SEEDS, RunFolder
from ..quoted import quoted_figures
from ..significance import paired_bootstrap, paired_bootstrap_f1
from .analyses import PROBE_SEEDS, analyse
from .plan import EnsemblePlan
from .tables import ensemble_tables
from .training import best_checkpoints

_Names = Mapping[str, str]
_Systems = Mapping[str, Sequence[LoadedRanker]]
_RECORDED = ("steps", "dialogues", "examples", "processes", "seconds", "checkpoint")
_PRINTED_DAM = "DAM"
"""How the names of the paper's systems over Deep Attention Matching begin."""


def system_names(plan: EnsemblePlan) -> dict[str, str]:
    """Name the systems as the paper does; the ensemble of seeds is ours."""
    return {
        BASELINE: plan.settings(BASELINE).run.method.replace("_", " ").title(),
        CHECKPOINTS: f"Ensemble ({plan.size})",
        SEEDS: "Ensemble of seeds",
        GRANULARITIES: f"Multi-Granularity ({plan.size})",
    }


def report_ensemble(plan: EnsemblePlan, analyses: bool, report: Callable[[str], None]) -> str:
    """Measure everything and render it."""
    started = time.perf_counter()
    names = system_names(plan)
    systems = _systems(plan, names)
    rows, comparisons = _rank(plan, systems, names, report)
    reports = {name: RunFolder(plan.run(name)).report() for name in (*plan.seeds(), *plan.members())}
    config: dict[str, Any] = {
        "recipe": plan.settings(BASELINE).fingerprint(),
        "size": plan.size,
        "candidates": read_candidates(plan.candidate_file("test"))[0],
        "training": {name: {key: record[key] for key in _RECORDED} for name, record in reports.items()},
        "comparisons": comparisons,
        "candidates_sha256": hashlib.sha256(plan.candidate_file("test").read_bytes()).hexdigest(),
    }
    text = _write(plan, config, rows, started)  # the next parts may take hours: each is written when it is there
    if analyses and not plan.gives_candidates and all(map(_embeds, systems.values())):
        for outcomes in analyse(plan, systems, list(names.values()), names[BASELINE], report):
            for outcome in outcomes:
                rows += rows_of(outcome.system, plan.source("test"), "test", outcome.measurements)
                config.setdefault("analyses", {})[f"{outcome.task}, {outcome.system}"] = outcome.config
            for task in dict.fromkeys(outcome.task for outcome in outcomes):
                counts = {outcome.system: outcome.counts.sum(axis=0) for outcome in outcomes if outcome.task == task}
                comparisons += _compared(names, task, "micro_f1", counts, paired_bootstrap_f1)
            text = _write(plan, config, rows, started)
    report(f"Wrote {plan.output / 'results.json'} and {plan.output / 'results.md'}")
    return text


def _write(plan: EnsemblePlan, config: dict[str, Any], rows: Sequence[Row], started: float) -> str:
    results = Results(describe_run(command_line(), config, PROBE_SEEDS, started), (*rows, *_quoted(plan)))
    write_results(results, plan.output / "results.json")
    text = ensemble_tables(results)
    write_text_atomically(plan.output / "results.md", text)
    return text


def _quoted(plan: EnsemblePlan) -> list[Row]:
    """Return the paper's figures of the same base model on the same corpus, under our names of the systems."""
    method = plan.settings(BASELINE).run.method
    rows = [row for row in quoted_figures("mgt").rows if row.corpus == plan.corpus]
    if method == "dual_encoder":
        return [row for row in rows if not row.model.startswith(_PRINTED_DAM)]
    if method != "deep_attention_matching":
        return []
    single = system_names(plan)[BASELINE]
    names = ((row, row.model.removeprefix(_PRINTED_DAM).lstrip(", ") or single) for row in rows)
    return [replace(row, model=name) for row, name in names if row.model.startswith(_PRINTED_DAM)]


def _embeds(members: Sequence[LoadedRanker]) -> bool:
    return all(member.model.embeds for member in members)


def _systems(plan: EnsemblePlan, names: _Names) -> dict[str, list[LoadedRanker]]:
    """Load the members of each system; members that several share are loaded once."""
    members = [plan.run(name) for name in plan.members()]
    folders = {
        names[BASELINE]: [plan.run(BASELINE)],
        names[CHECKPOINTS]: best_checkpoints(plan.run(BASELINE), plan.size),
        names[SEEDS]: [plan.run(name) for name in plan.seeds()],
        names[GRANULARITIES]: members,
        **{f"granularity {level}": [folder] for level, folder in enumerate(members, 1)},
    }
    distinct = dict.fromkeys(folder for parts in folders.values() for folder in parts)
    rankers = {folder: load_ranker(str(folder)) for folder in distinct}
    return {name: [rankers[folder] for folder in parts] for name, parts in folders.items()}


def _rank(
    plan: EnsemblePlan, systems: _Systems, names: _Names, report: Callable[[str], None]
) -> tuple[list[Row], list[dict[str, Any]]]:
    _, selections = read_candidates(plan.candidate_file("test"))
    distinct = list({id(member): member for members in systems.values() for member in members}.values())
    report(f"Ranking {len(selections):,} candidate sets with {len(distinct)} rankers")
    progress = tqdm(distinct, desc="rank", unit="ranker", file=sys.stderr)
    scores = {id(member): next_utterance.member_scores(member, selections) for member in progress}
    rows: list[Row] = []
    ranks = {}
    for name, members in systems.items():
        scored = [scores[id(member)] for member in members]
        ranks[name] = next_utterance.rank_candidates(scored, selections)
        rows += _figures(name, plan, ranks[name])
        if len(members) > 1 and _embeds(members):
            by_vectors = next_utterance.rank_candidates_by_vectors(scored, selections)
            rows += _figures(f"{name}, by its vectors", plan, by_vectors)
    comparisons = []
    for other in (BASELINE, CHECKPOINTS, SEEDS):
        for metric, field in (("mrr", "reciprocal_ranks"), ("hits1", "hits")):
            values = {names[key]: getattr(ranks[names[key]], field) for key in (GRANULARITIES, other)}
            comparisons += _compared(names, next_utterance.NAME, metric, values, paired_bootstrap)
    return rows, comparisons


def _figures(name: str, plan: EnsemblePlan, ranked: next_utterance.RankedCandidates) -> Sequence[Row]:
    figures = (("mrr", ranked.reciprocal_ranks), ("hits1", ranked.hits), *ranked.recalls.items())
    means = ((metric, [float(np.mean(values))]) for metric, values in figures)
    measured = [percentage(next_utterance.NAME, metric, "", mean) for metric, mean in means]
    return rows_of(name, plan.source("test"), "test", measured)


def _compared(
    names: _Names, task: str, metric: str, values: Mapping[str, Any], bootstrap: Callable[..., Any]
) -> list[dict[str, Any]]:
    """Compare the granularities with each other system that has values."""
    first, comparisons = names[GRANULARITIES], []
    for other in (names[BASELINE], names[CHECKPOINTS], names[SEEDS]):
        if first in values and other in values:
            record = asdict(bootstrap(values[first], values[other]))
            record |= {key: 100 * record[key] for key in ("difference", "low", "high")}
            comparisons.append({"first": first, "second": other, "task": task, "metric": metric, **record})
    return comparisons
