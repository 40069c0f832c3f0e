"""The results of multi-granularity training: the paper's tables beside ours, and significance.

All systems rank the same candidate sets of the test split; probes (Tables 4 and 5) read the context
vectors of those that embed.
"""

import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ...data import CORPORA
from ...data.examples import ResponseSelection, read_candidates
from ...dialogue import Dialogue
from ...evaluation.evaluating import command_line
from ...evaluation.results.rows import Results, Row, describe_run, rows_of, write_results
from ...evaluation.tasks import next_utterance_task
from ...evaluation.tasks.task import percentage
from ...evaluation.tasks.task_texts import correct_candidates
from ...methods import get_method
from ...methods.ranker import LoadedRanker, load_ranker
from ...metrics.next_utterance import example_scores
from ...storage.files import write_text_atomically
from ...storage.run_folder import BASELINE, RunFolder
from ...training.arguments import make_settings
from ...training.dialogues import training_dialogues
from ..paper_tables import ensemble_tables
from ..quoted import quoted_figures
from ..significance import paired_bootstrap
from ..tasks.probes import ACTS, WORDS, probe_rankers
from .plan import CHECKPOINTS, GRANULARITIES, SEEDS, EnsemblePlan
from .training import best_checkpoints

PROBE_SEEDS = (0, 1, 2)

_Names = Mapping[str, str]
_RECORDED = ("steps", "dialogues", "examples", "processes", "seconds", "checkpoint")
_PRINTED_DAM = "DAM"  # how the names of the paper's systems over Deep Attention Matching begin


def system_names(plan: EnsemblePlan) -> dict[str, str]:
    """Name the systems as the paper does; the ensemble of seeds is ours."""
    return {
        BASELINE: plan.settings(BASELINE).run.method.replace("_", " ").title(),
        CHECKPOINTS: f"Ensemble ({plan.size})",
        SEEDS: "Ensemble of seeds",
        GRANULARITIES: f"Multi-Granularity ({plan.size})",
    }


def report_ensemble(plan: EnsemblePlan, analyses: bool, report: Callable[[str], None]) -> str:
    """Measure all systems and render the tables; each part is written as soon as it is there."""
    started = time.perf_counter()
    names = system_names(plan)
    systems = _systems(plan, names)
    rows, comparisons = _rank(plan, systems, names, report)
    reports = {
        name: RunFolder(plan.run(name)).report() for name in (*plan.seeds(), *plan.members())
    }
    config: dict[str, Any] = {
        "recipe": plan.settings(BASELINE).fingerprint(),
        "size": plan.size,
        "candidates": read_candidates(plan.candidate_file("test"))[0],
        "training": {
            name: {key: record[key] for key in _RECORDED} for name, record in reports.items()
        },
        "comparisons": comparisons,
        "candidates_sha256": hashlib.sha256(plan.candidate_file("test").read_bytes()).hexdigest(),
        "analyses": {},
    }
    text = _write(plan, config, rows, started)
    if analyses and all(map(_embeds, systems.values())):
        for target, parts in _probed(plan, report):
            task = f"{target}-probe"
            counts = {}
            for name, probed in probe_rankers(systems, parts, target, PROBE_SEEDS).items():
                rows += rows_of(name, plan.source("test"), "test", probed.rows)
                config["analyses"][f"{task}, {name}"] = probed.config
                counts[name] = probed.counts.sum(axis=0)
            comparisons += _compared(names, task, "micro_f1", counts)
            text = _write(plan, config, rows, started)
    report(f"Wrote {plan.output / 'results.json'} and {plan.output / 'results.md'}")
    return text


def _write(plan: EnsemblePlan, config: dict[str, Any], rows: Sequence[Row], started: float) -> str:
    run = describe_run(command_line(), config, PROBE_SEEDS, started)
    results = Results(run, (*rows, *_quoted(plan)))
    write_results(results, plan.output / "results.json")
    text = ensemble_tables(results)
    write_text_atomically(plan.output / "results.md", text)
    return text


def _quoted(plan: EnsemblePlan) -> list[Row]:
    """Return the paper's figures of the same base model and corpus, under our names of systems."""
    method = plan.settings(BASELINE).run.method
    rows = [row for row in quoted_figures("mgt").rows if row.corpus == plan.corpus]
    if method == "dual_encoder":
        return [row for row in rows if not row.model.startswith(_PRINTED_DAM)]
    if method != "deep_attention_matching":
        return []
    single = system_names(plan)[BASELINE]
    return [
        replace(row, model=row.model.removeprefix(_PRINTED_DAM).lstrip(", ") or single)
        for row in rows
        if row.model.startswith(_PRINTED_DAM)
    ]


def _embeds(members: Sequence[LoadedRanker]) -> bool:
    return all(member.model.embeds for member in members)


def _systems(plan: EnsemblePlan, names: _Names) -> dict[str, list[LoadedRanker]]:
    """Load the members of each system; members that several share are loaded once."""
    members = list(map(plan.run, plan.members()))
    folders = {
        names[BASELINE]: [plan.run(BASELINE)],
        names[CHECKPOINTS]: best_checkpoints(plan.run(BASELINE), plan.size),
        names[SEEDS]: list(map(plan.run, plan.seeds())),
        names[GRANULARITIES]: members,
        **{f"granularity {level}": [folder] for level, folder in enumerate(members, 1)},
    }
    distinct = dict.fromkeys(folder for parts in folders.values() for folder in parts)
    rankers = {folder: load_ranker(str(folder)) for folder in distinct}
    return {name: [rankers[folder] for folder in parts] for name, parts in folders.items()}


def _rank(
    plan: EnsemblePlan,
    systems: Mapping[str, Sequence[LoadedRanker]],
    names: _Names,
    report: Callable[[str], None],
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Rank the candidate sets with all systems, and compare the granularities with the others."""
    _, selections = read_candidates(plan.candidate_file("test"))
    rankers = {id(member): member for members in systems.values() for member in members}
    report(f"Ranking {len(selections):,} candidate sets with {len(rankers)} rankers")
    scores = {
        key: next_utterance_task.member_scores(member, selections)
        for key, member in tqdm(rankers.items(), desc="rank", unit="ranker", file=sys.stderr)
    }
    rows: list[Row] = []
    ranks = {}
    for name, members in systems.items():
        scored = [scores[id(member)] for member in members]
        averaged = next_utterance_task.averaged([member.scores for member in scored])
        ranks[name] = _ranks(averaged, selections)
        rows += _figures(name, plan, ranks[name])
        if len(members) > 1 and _embeds(members):
            cosines = zip(*(member.cosines or () for member in scored), strict=True)
            means = [np.mean(several, axis=0) for several in cosines]
            by_vectors = _ranks(means, selections)
            rows += _figures(f"{name}, by its vectors", plan, by_vectors)
    comparisons = []
    for metric in ("mrr", "hits1"):
        values = {name: ranks[name][metric] for name in names.values()}
        comparisons += _compared(names, next_utterance_task.NAME, metric, values)
    return rows, comparisons


def _ranks(
    scores: next_utterance_task.Scores, selections: Sequence[ResponseSelection]
) -> dict[str, NDArray[np.float64]]:
    """Return the figures of each candidate set."""
    return example_scores(scores, [correct_candidates(selection) for selection in selections])


def _figures(
    name: str, plan: EnsemblePlan, figures: Mapping[str, NDArray[np.float64]]
) -> Sequence[Row]:
    measured = [
        percentage(next_utterance_task.NAME, metric, "", [float(np.mean(values))])
        for metric, values in figures.items()
    ]
    return rows_of(name, plan.source("test"), "test", measured)


def _compared(
    names: _Names, task: str, metric: str, values: Mapping[str, NDArray[Any]]
) -> list[dict[str, Any]]:
    """Compare the granularities with each other system."""
    first = names[GRANULARITIES]
    comparisons = []
    for second in (names[BASELINE], names[CHECKPOINTS], names[SEEDS]):
        record = asdict(paired_bootstrap(values[first], values[second]))
        record |= {key: 100 * record[key] for key in ("difference", "low", "high")}
        described = {"first": first, "second": second, "task": task, "metric": metric}
        comparisons.append(described | record)
    return comparisons


def _probed(
    plan: EnsemblePlan, report: Callable[[str], None]
) -> Iterator[tuple[str, dict[str, list[Dialogue]]]]:
    """Yield what is told from the vectors, with the dialogues of each part (section 5)."""
    parts = {"train": analysis_dialogues(plan), "dev": plan.load("dev"), "test": plan.load("test")}
    yield WORDS, parts
    if plan.corpus in CORPORA:  # other corpora name acts otherwise
        parts = parts | {"train": analysis_dialogues(plan, corpus=f"{plan.corpus}/train")}
    if all(map(_has_acts, parts.values())):
        yield ACTS, parts
    else:
        report(f"{plan.corpus} has no dialogue acts: they are not probed")


def _has_acts(dialogues: Sequence[Dialogue]) -> bool:
    return any(turn.dialogue_acts for dialogue in dialogues for turn in dialogue.turns)


def analysis_dialogues(plan: EnsemblePlan, **changes: Any) -> list[Dialogue]:
    """Load the dialogues that the recipe trains on, without those of evaluation sets."""
    if plan.analysis_dialogues is not None:
        changes["max_dialogues"] = plan.analysis_dialogues
    settings = make_settings(plan.values(BASELINE) | changes, plan.config)
    return training_dialogues(
        settings.run, get_method(settings.run.method), settings.sample_seed, lambda line: None
    )
