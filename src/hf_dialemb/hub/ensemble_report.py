"""What multi-granularity training gained: the paper's tables, ours beside its own, and what is more than chance.

The single model, the ensembles and each granularity rank the same candidate sets of the test split. Probes and
fine-tuning (Tables 4 to 6) read the contexts' vectors of those that embed. Everything is kept in ``results.json``, and
what was measured once for the same checkpoints is not measured again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..corpora import load_dialogues
from ..corpora.candidates import read_candidates
from ..evaluation.act_fine_tuning import run_act_fine_tuning
from ..evaluation.context_labels import ACTS, WORDS
from ..evaluation.linear_layer import Outcome
from ..evaluation.next_utterance import NAME, rank_candidates
from ..evaluation.probes import run_probes
from ..evaluation.quoted import quoted_figures
from ..evaluation.results import Results, Row, describe_run, write_results
from ..evaluation.run import command_line
from ..evaluation.significance import paired_bootstrap, paired_bootstrap_f1
from ..evaluation.task import percentage
from ..models import get_method
from ..models.dialogue import Dialogue
from ..models.files import write_json_atomically, write_text_atomically
from ..models.ranking import LoadedRanker, load_ranker
from ..training.arguments import parse
from ..training.dialogues import training_dialogues
from ..training.ensemble import BASELINE, CHECKPOINTS, GRANULARITIES, SEEDS, EnsemblePlan, best_checkpoints
from .ensemble_tables import ensemble_tables

NAMES = {
    BASELINE: "Dual Encoder",
    CHECKPOINTS: "Ensemble (5)",
    SEEDS: "Ensemble of seeds",
    GRANULARITIES: "Multi-Granularity (5)",
}
"""What the paper calls the systems; the ensemble of seeds is ours."""

RANDOM, FINE_TUNED = "Random Init", "Fine-tuned"
PROBE_SEEDS, TUNING_SEEDS = (0, 1, 2), (0,)


def report_ensemble(plan: EnsemblePlan, analyses: bool, report: Callable[[str], None]) -> str:
    """Measures everything and renders it.

    Args:
        plan: What was trained.
        analyses: Whether to probe and to fine-tune.
        report: Receives one line per fact worth telling.

    Returns:
        The tables in Markdown, as written to ``results.md`` beside ``results.json``.

    Raises:
        InputError: A checkpoint or a corpus is not at hand.
    """
    started = time.perf_counter()
    systems = _systems(plan)
    rows, comparisons = _rank(plan, systems, report)
    config: dict[str, Any] = {
        "recipe": plan.settings(BASELINE).fingerprint(),
        "size": plan.size,
        "candidates": read_candidates(plan.candidate_file("test"))[0],
        "training": {name: _training(plan.run(name)) for name in (*plan.seeds(), *plan.members())},
        "comparisons": comparisons,
    }
    if analyses and all(member.model.embeds for members in systems.values() for member in members):
        for outcome_rows, compared, settings in _analyse(plan, systems, report):
            rows += outcome_rows
            config["comparisons"] += compared
            config.update(settings)
    quoted = [row for row in quoted_figures("mgt").rows if row.corpus == plan.corpus]
    results = Results(describe_run(command_line(), config, PROBE_SEEDS, started), (*rows, *quoted))
    write_results(results, plan.output / "results.json")
    text = ensemble_tables(results)
    write_text_atomically(plan.output / "results.md", text)
    report(f"Wrote {plan.output / 'results.json'} and {plan.output / 'results.md'}")
    return text


def _systems(plan: EnsemblePlan) -> dict[str, list[LoadedRanker]]:
    """Loads the members of each system; members that several share are loaded once."""
    known: dict[Path, LoadedRanker] = {}

    def loaded(folders: Sequence[Path]) -> list[LoadedRanker]:
        for folder in folders:
            if folder not in known:
                known[folder] = load_ranker(str(folder))
        return [known[folder] for folder in folders]

    members = [plan.run(name) for name in plan.members()]
    systems = {
        NAMES[BASELINE]: loaded([plan.run(BASELINE)]),
        NAMES[CHECKPOINTS]: loaded(best_checkpoints(plan.run(BASELINE), plan.size)),
        NAMES[SEEDS]: loaded([plan.run(name) for name in plan.seeds()]),
        NAMES[GRANULARITIES]: loaded(members),
    }
    systems |= {f"granularity {level}": loaded([folder]) for level, folder in enumerate(members, 1)}
    return systems


def _training(folder: Path) -> dict[str, Any]:
    record = json.loads((folder / "training_report.json").read_text(encoding="utf-8"))
    return {key: record[key] for key in ("steps", "dialogues", "examples", "processes", "seconds", "checkpoint")}


def _rank(
    plan: EnsemblePlan, systems: Mapping[str, Sequence[LoadedRanker]], report: Callable[[str], None]
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Ranks the test candidates with the assembled checkpoints, and compares the ensembles example by example."""
    _, selections = read_candidates(plan.candidate_file("test"))
    folders = {NAMES[name]: plan.run(name) for name in NAMES}
    folders |= {f"granularity {level}": plan.run(name) for level, name in enumerate(plan.members(), 1)}
    rows, ranks = [], {}
    for name, folder in folders.items():
        report(f"Ranking {len(selections):,} candidate sets with {folder}")
        found = rank_candidates(load_ranker(str(folder)), selections)
        ranks[name] = found
        for metric, values in (("mrr", found.reciprocal_ranks), ("hits1", found.hits)):
            figure = percentage(NAME, metric, "", [float(np.mean(values))])
            rows.append(Row(name, plan.corpus, "test", *figure))
    ours, comparisons = ranks[NAMES[GRANULARITIES]], []
    for name in (NAMES[BASELINE], NAMES[CHECKPOINTS], NAMES[SEEDS]):
        others = ranks[name]
        for metric, first, second in (
            ("mrr", ours.reciprocal_ranks, others.reciprocal_ranks),
            ("hits1", ours.hits, others.hits),
        ):
            compared = paired_bootstrap(first, second)
            comparisons.append(_comparison(NAMES[GRANULARITIES], name, NAME, metric, asdict(compared)))
    return rows, comparisons


def _analyse(
    plan: EnsemblePlan, systems: Mapping[str, list[LoadedRanker]], report: Callable[[str], None]
) -> list[tuple[list[Row], list[dict[str, Any]], dict[str, Any]]]:
    """Probes all systems and fine-tunes the four that the paper does, or reads what was found before."""
    train = _training_dialogues(plan, ())
    labelled = _training_dialogues(plan, ("--corpus", f"{plan.corpus}/train"))  # other corpora name acts otherwise
    dev, test = (load_dialogues(plan.corpus, plan.data_dir, split) for split in ("dev", "test"))
    dev = dev[: plan.settings(BASELINE).run.max_dev_dialogues]
    whole = {name: systems[name] for name in NAMES.values()}
    baseline = systems[NAMES[BASELINE]]
    made: dict[str, Callable[[], list[Outcome]]] = {
        "word_probes": lambda: run_probes(systems, train, dev, test, PROBE_SEEDS, (WORDS,), show_progress=True),
        "word_fine_tuning": lambda: run_act_fine_tuning(
            {FINE_TUNED: baseline}, train, dev, test, TUNING_SEEDS, (FINE_TUNED,), (WORDS,), show_progress=True
        ),
    }
    if all(any(turn.dialogue_acts for each in part for turn in each.turns) for part in (labelled, dev, test)):
        made["act_probes"] = lambda: run_probes(systems, labelled, dev, test, PROBE_SEEDS, (ACTS,), show_progress=True)
        made["act_fine_tuning"] = lambda: run_act_fine_tuning(
            {RANDOM: baseline, **whole}, labelled, dev, test, TUNING_SEEDS, (RANDOM,), show_progress=True
        )
    else:
        report(f"{plan.corpus} has no dialogue acts: nothing is told of them")
    return [_kept(plan, name, make, report) for name, make in made.items()]


def _training_dialogues(plan: EnsemblePlan, words: Sequence[str]) -> list[Dialogue]:
    """Loads what the recipe trains on, or what it would with other settings, without what evaluation sets hold."""
    if plan.analysis_dialogues is not None:
        words = [*words, "--max_dialogues", str(plan.analysis_dialogues)]
    settings = parse(plan.config, [*plan.words(BASELINE), *words])
    return training_dialogues(settings.run, get_method(settings.run.method), settings.sample_seed, lambda line: None)


def _kept(
    plan: EnsemblePlan, name: str, make: Callable[[], list[Outcome]], report: Callable[[str], None]
) -> tuple[list[Row], list[dict[str, Any]], dict[str, Any]]:
    """Returns an analysis' figures, comparisons and settings; makes it unless it was made of the same checkpoints."""
    path = plan.output / f"{name}.json"
    made_of: dict[str, Any] = {}
    if plan.analysis_dialogues is not None:
        made_of["analysis_dialogues"] = plan.analysis_dialogues
    made_of |= {run: _training(plan.run(run))["checkpoint"] for run in (*plan.seeds(), *plan.members())}
    if path.is_file():
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["made_of"] == made_of:
            return [Row(**row) for row in record["rows"]], record["comparisons"], {name: record["settings"]}
    report(f"Measuring {name.replace('_', ' ')}")
    outcomes = make()
    rows = [Row(each.system, plan.corpus, "test", *figure) for each in outcomes for figure in each.measurements]
    comparisons = []
    by_task: dict[str, dict[str, Outcome]] = {}
    for each in outcomes:
        by_task.setdefault(each.task, {})[each.system] = each
    for task, found in by_task.items():
        ours = found.get(NAMES[GRANULARITIES])
        for other in (NAMES[BASELINE], NAMES[CHECKPOINTS], NAMES[SEEDS]):
            if ours is not None and other in found:
                compared = paired_bootstrap_f1(ours.counts.sum(axis=0), found[other].counts.sum(axis=0))
                comparisons.append(_comparison(NAMES[GRANULARITIES], other, task, "micro_f1", asdict(compared)))
    settings = {f"{each.task}, {each.system}": each.config for each in outcomes}
    record = {"made_of": made_of, "rows": [asdict(row) for row in rows], "comparisons": comparisons}
    write_json_atomically(path, record | {"settings": settings})
    return rows, comparisons, {name: settings}


def _comparison(first: str, second: str, task: str, metric: str, found: dict[str, Any]) -> dict[str, Any]:
    shares = {key: 100 * found[key] for key in ("difference", "low", "high")}
    return {"first": first, "second": second, "task": task, "metric": metric, **found, **shares}
