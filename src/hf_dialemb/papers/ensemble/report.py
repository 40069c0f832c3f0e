"""What multi-granularity training gained: the paper's tables, ours beside its own, and what is more than chance.

The single model, the ensembles and each granularity rank the same candidate sets of the test split. Probes and
fine-tuning (Tables 4 to 6) read the contexts' vectors of those that embed. Everything is kept in ``results.json``, and
what was measured once for the same checkpoints is not measured again.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from ...corpora.candidates import read_candidates
from ...evaluation.results.rows import Results, Row, describe_run, rows_of, write_results
from ...evaluation.run import command_line
from ...evaluation.tasks import next_utterance
from ...evaluation.tasks.task import Measurement, percentage
from ...methods.ranking import LoadedRanker, load_ranker
from ...runs.files import write_text_atomically
from ...runs.folder import BASELINE, CHECKPOINTS, GRANULARITIES, SEEDS
from ..quoted import quoted_figures
from ..significance import paired_bootstrap, paired_bootstrap_f1
from ..tasks.linear_layer import Outcome
from .analyses import PROBE_SEEDS, analyse, training_record
from .plan import EnsemblePlan
from .tables import ensemble_tables
from .training import best_checkpoints

_PRINTED_DAM = "DAM"
"""How the names of the paper's systems over Deep Attention Matching begin."""


def system_names(plan: EnsemblePlan) -> dict[str, str]:
    """Names the systems as the paper does; the ensemble of seeds is ours."""
    return {
        BASELINE: _single(plan),
        CHECKPOINTS: f"Ensemble ({plan.size})",
        SEEDS: "Ensemble of seeds",
        GRANULARITIES: f"Multi-Granularity ({plan.size})",
    }


def _single(plan: EnsemblePlan) -> str:
    return plan.settings(BASELINE).run.method.replace("_", " ").title()


def report_ensemble(plan: EnsemblePlan, analyses: bool, report: Callable[[str], None]) -> str:
    """Measures everything and renders it."""
    started = time.perf_counter()
    names = system_names(plan)
    systems = _systems(plan, names)
    rows, comparisons = _rank(plan, systems, names, report)
    config: dict[str, Any] = {
        "recipe": plan.settings(BASELINE).fingerprint(),
        "size": plan.size,
        "candidates": read_candidates(plan.candidate_file("test"))[0],
        "training": {name: training_record(plan.run(name)) for name in (*plan.seeds(), *plan.members())},
        "comparisons": comparisons,
        "candidates_sha256": hashlib.sha256(plan.candidate_file("test").read_bytes()).hexdigest(),
    }
    text = _write(plan, config, rows, started)  # what comes now may take hours: each part is written when it is there
    if analyses and not plan.gives_candidates and all(_embeds(members) for members in systems.values()):
        for outcomes in analyse(plan, systems, list(names.values()), names[BASELINE], report):
            rows += [_row(plan, each.system, figure) for each in outcomes for figure in each.measurements]
            comparisons += _compare(outcomes, names)
            config.setdefault("analyses", {}).update({f"{each.task}, {each.system}": each.config for each in outcomes})
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
    """Finds the paper's figures of the same base model on the same corpus, under our names of the systems."""
    method = plan.settings(BASELINE).run.method
    rows = [row for row in quoted_figures("mgt").rows if row.corpus == plan.corpus]
    if method == "dual_encoder":
        return [row for row in rows if not row.model.startswith(_PRINTED_DAM)]
    if method != "deep_attention_matching":
        return []
    names = ((row, row.model.removeprefix(_PRINTED_DAM).lstrip(", ") or _single(plan)) for row in rows)
    return [replace(row, model=name) for row, name in names if row.model.startswith(_PRINTED_DAM)]


def _embeds(members: Sequence[LoadedRanker]) -> bool:
    return all(member.model.embeds for member in members)


def _systems(plan: EnsemblePlan, names: Mapping[str, str]) -> dict[str, list[LoadedRanker]]:
    """Loads the members of each system; members that several share are loaded once."""
    known: dict[Path, LoadedRanker] = {}

    def loaded(folders: Sequence[Path]) -> list[LoadedRanker]:
        for folder in folders:
            if folder not in known:
                known[folder] = load_ranker(str(folder))
        return [known[folder] for folder in folders]

    members = [plan.run(name) for name in plan.members()]
    systems = {
        names[BASELINE]: loaded([plan.run(BASELINE)]),
        names[CHECKPOINTS]: loaded(best_checkpoints(plan.run(BASELINE), plan.size)),
        names[SEEDS]: loaded([plan.run(name) for name in plan.seeds()]),
        names[GRANULARITIES]: loaded(members),
    }
    systems |= {f"granularity {level}": loaded([folder]) for level, folder in enumerate(members, 1)}
    return systems


def _rank(
    plan: EnsemblePlan,
    systems: Mapping[str, Sequence[LoadedRanker]],
    names: Mapping[str, str],
    report: Callable[[str], None],
) -> tuple[list[Row], list[dict[str, Any]]]:
    _, selections = read_candidates(plan.candidate_file("test"))
    distinct = list({id(member): member for members in systems.values() for member in members}.values())
    report(f"Ranking {len(selections):,} candidate sets with {len(distinct)} rankers")
    progress = tqdm(distinct, desc="rank", unit="ranker", file=sys.stderr)
    known = {id(member): next_utterance.member_scores(member, selections) for member in progress}
    rows, ranks = [], {}
    for name, members in systems.items():
        scored = [known[id(member)] for member in members]
        ranks[name] = next_utterance.rank_candidates(scored, selections)
        rows += _figures(name, plan, ranks[name])
        if len(members) > 1 and _embeds(members):
            found = next_utterance.rank_candidates_by_vectors(scored, selections)
            rows += _figures(f"{name}, by its vectors", plan, found)
    ours, comparisons = ranks[names[GRANULARITIES]], []
    for name in (names[BASELINE], names[CHECKPOINTS], names[SEEDS]):
        others = ranks[name]
        for metric, field in (("mrr", "reciprocal_ranks"), ("hits1", "hits")):
            compared = paired_bootstrap(getattr(ours, field), getattr(others, field))
            comparisons.append(_comparison(names[GRANULARITIES], name, next_utterance.NAME, metric, asdict(compared)))
    return rows, comparisons


def _figures(name: str, plan: EnsemblePlan, found: next_utterance.RankedCandidates) -> list[Row]:
    figures = (("mrr", found.reciprocal_ranks), ("hits1", found.hits), *found.recalls.items())
    means = ((metric, [float(np.mean(values))]) for metric, values in figures)
    return [_row(plan, name, percentage(next_utterance.NAME, metric, "", mean)) for metric, mean in means]


def _row(plan: EnsemblePlan, system: str, measured: Measurement) -> Row:
    return rows_of(system, plan.source("test"), "test", [measured])[0]


def _compare(outcomes: Sequence[Outcome], names: Mapping[str, str]) -> list[dict[str, Any]]:
    by_task: dict[str, dict[str, Outcome]] = {}
    for each in outcomes:
        by_task.setdefault(each.task, {})[each.system] = each
    comparisons = []
    for task, found in by_task.items():
        ours = found.get(names[GRANULARITIES])
        for other in (names[BASELINE], names[CHECKPOINTS], names[SEEDS]):
            if ours is not None and other in found:
                compared = paired_bootstrap_f1(ours.counts.sum(axis=0), found[other].counts.sum(axis=0))
                comparisons.append(_comparison(names[GRANULARITIES], other, task, "micro_f1", asdict(compared)))
    return comparisons


def _comparison(first: str, second: str, task: str, metric: str, found: dict[str, Any]) -> dict[str, Any]:
    shares = {key: 100 * found[key] for key in ("difference", "low", "high")}
    return {"first": first, "second": second, "task": task, "metric": metric, **found, **shares}
