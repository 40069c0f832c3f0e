"""The results of multi-granularity training.

The paper's tables beside ours, and what is more than chance.

All systems rank the same candidate sets of the test split; probes and fine-tuning (Tables 4 to 6)
read the context vectors of those that embed. Outcomes of analyses are kept with digests of the
checkpoints, and not measured twice.
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ...data import CORPORA
from ...data.examples import read_candidates
from ...dialogue import Dialogue
from ...evaluation.evaluating import command_line
from ...evaluation.results.rows import Results, Row, describe_run, rows_of, write_results
from ...evaluation.tasks import next_utterance_task
from ...evaluation.tasks.task import percentage
from ...methods import get_method
from ...methods.ranker import LoadedRanker, load_ranker
from ...storage.files import write_json_atomically, write_text_atomically
from ...storage.run_folder import BASELINE, CHECKPOINTS, GRANULARITIES, SEEDS, RunFolder
from ...training.arguments import make_settings
from ...training.data import weights_digest
from ...training.dialogues import training_dialogues
from ..paper_tables import ensemble_tables
from ..quoted import quoted_figures
from ..significance import paired_bootstrap, paired_bootstrap_f1
from ..tasks.linear_layer import ACTS, WORDS, Outcome
from ..tasks.probes import run_act_fine_tuning, run_probes
from .plan import EnsemblePlan
from .training import best_checkpoints

RANDOM, FINE_TUNED = "Random Init", "Fine-tuned"
PROBE_SEEDS, TUNING_SEEDS = (0, 1, 2), (0,)

_Names = Mapping[str, str]
_Systems = Mapping[str, Sequence[LoadedRanker]]
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
    """Measure everything and render it."""
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
    }
    # the next parts may take hours: each is written when it is there
    text = _write(plan, config, rows, started)
    if analyses and not plan.gives_candidates and all(map(_embeds, systems.values())):
        for outcomes in _analyse(plan, systems, names, report):
            for outcome in outcomes:
                rows += rows_of(outcome.system, plan.source("test"), "test", outcome.measurements)
                config.setdefault("analyses", {})[f"{outcome.task}, {outcome.system}"] = (
                    outcome.config
                )
            for task in dict.fromkeys(outcome.task for outcome in outcomes):
                counts = {
                    outcome.system: outcome.counts.sum(axis=0)
                    for outcome in outcomes
                    if outcome.task == task
                }
                comparisons += _compared(names, task, "micro_f1", counts, paired_bootstrap_f1)
            text = _write(plan, config, rows, started)
    report(f"Wrote {plan.output / 'results.json'} and {plan.output / 'results.md'}")
    return text


def _write(plan: EnsemblePlan, config: dict[str, Any], rows: Sequence[Row], started: float) -> str:
    results = Results(
        describe_run(command_line(), config, PROBE_SEEDS, started), (*rows, *_quoted(plan))
    )
    write_results(results, plan.output / "results.json")
    text = ensemble_tables(results)
    write_text_atomically(plan.output / "results.md", text)
    return text


def _quoted(plan: EnsemblePlan) -> list[Row]:
    """Return the paper's figures of the same base model on the same corpus, under our names of the
    systems.
    """
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
    plan: EnsemblePlan, systems: _Systems, names: _Names, report: Callable[[str], None]
) -> tuple[list[Row], list[dict[str, Any]]]:
    _, selections = read_candidates(plan.candidate_file("test"))
    distinct = list(
        {id(member): member for members in systems.values() for member in members}.values()
    )
    report(f"Ranking {len(selections):,} candidate sets with {len(distinct)} rankers")
    progress = tqdm(distinct, desc="rank", unit="ranker", file=sys.stderr)
    scores = {
        id(member): next_utterance_task.member_scores(member, selections) for member in progress
    }
    rows: list[Row] = []
    ranks = {}
    for name, members in systems.items():
        scored = [scores[id(member)] for member in members]
        own = next_utterance_task.averaged([member.scores for member in scored])
        ranks[name] = next_utterance_task.rank_candidates(own, selections)
        rows += _figures(name, plan, ranks[name])
        if len(members) > 1 and _embeds(members):
            cosines = zip(*(member.cosines or () for member in scored), strict=True)
            means = [np.mean(several, axis=0) for several in cosines]
            rows += _figures(
                f"{name}, by its vectors",
                plan,
                next_utterance_task.rank_candidates(means, selections),
            )
    comparisons = []
    for other in (BASELINE, CHECKPOINTS, SEEDS):
        for metric in ("mrr", "hits1"):
            values = {names[key]: ranks[names[key]][metric] for key in (GRANULARITIES, other)}
            comparisons += _compared(
                names, next_utterance_task.NAME, metric, values, paired_bootstrap
            )
    return rows, comparisons


def _figures(
    name: str, plan: EnsemblePlan, figures: Mapping[str, NDArray[np.float64]]
) -> Sequence[Row]:
    means = ((metric, [float(np.mean(values))]) for metric, values in figures.items())
    measured = [percentage(next_utterance_task.NAME, metric, "", mean) for metric, mean in means]
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
            comparisons.append(
                {"first": first, "second": other, "task": task, "metric": metric, **record}
            )
    return comparisons


def _analyse(
    plan: EnsemblePlan, systems: _Systems, names: _Names, report: Callable[[str], None]
) -> Iterator[list[Outcome]]:
    """Probe all systems and fine-tune those that the paper does (section 5), or read earlier
    outcomes.
    """
    train = labelled = analysis_dialogues(plan)
    if plan.corpus in CORPORA:  # other corpora name acts otherwise
        labelled = analysis_dialogues(plan, corpus=f"{plan.corpus}/train")
    dev, test = plan.load("dev"), plan.load("test")
    single = systems[names[BASELINE]]
    probe = partial(run_probes, seeds=PROBE_SEEDS)
    bfloat16 = plan.settings(BASELINE).training.bf16  # rankers learn on as they were trained
    tune = partial(run_act_fine_tuning, seeds=TUNING_SEEDS, bfloat16=bfloat16)
    of_words = {"parts": {"train": train, "dev": dev, "test": test}, "target": WORDS}
    analyses: list[tuple[str, _Systems, Callable[..., object]]] = [
        ("word_probes", systems, partial(probe, **of_words)),
        ("word_fine_tuning", {FINE_TUNED: single}, partial(tune, **of_words, untrained=FINE_TUNED)),
    ]
    if all(
        any(turn.dialogue_acts for dialogue in part for turn in dialogue.turns)
        for part in (labelled, dev, test)
    ):
        of_acts = {"parts": {"train": labelled, "dev": dev, "test": test}, "target": ACTS}
        tuned = {RANDOM: single, **{name: systems[name] for name in names.values()}}
        analyses += [
            ("act_probes", systems, partial(probe, **of_acts)),
            ("act_fine_tuning", tuned, partial(tune, **of_acts, untrained=RANDOM)),
        ]
    else:
        report(f"{plan.corpus} has no dialogue acts: they are not analysed")
    made_of: dict[str, Any] = {
        "dialogues": plan.analysis_dialogues,
        "test_dialogues": plan.test_dialogues,
    }
    made_of |= {run: weights_digest(plan.run(run)) for run in (*plan.seeds(), *plan.members())}
    for analysis, measured, make in analyses:
        files = {
            name: plan.output / "analyses" / f"{analysis}-{place}.json"
            for place, name in enumerate(measured, 1)
        }
        yield _outcomes(analysis, measured, files, make, made_of, report)


def analysis_dialogues(plan: EnsemblePlan, **changes: Any) -> list[Dialogue]:
    """Load the dialogues that the recipe trains on, without those of evaluation sets."""
    if plan.analysis_dialogues is not None:
        changes["max_dialogues"] = plan.analysis_dialogues
    settings = make_settings(plan.values(BASELINE) | changes, plan.config)
    return training_dialogues(
        settings.run, get_method(settings.run.method), settings.sample_seed, lambda line: None
    )


def _outcomes(
    analysis: str,
    systems: _Systems,
    files: Mapping[str, Path],
    make: Callable[..., object],
    made_of: dict[str, Any],
    report: Callable[[str], None],
) -> list[Outcome]:
    """Read the outcomes that are there, and make the others.

    Each is written as soon as it is made.
    """
    outcomes = {name: _kept(path, name, made_of) for name, path in files.items()}
    missing = {name: systems[name] for name, outcome in outcomes.items() if outcome is None}

    def finished(outcome: Outcome) -> None:
        outcomes[outcome.system] = outcome
        record = {"made_of": made_of, **asdict(outcome), "counts": outcome.counts.tolist()}
        write_json_atomically(files[outcome.system], record)

    if missing:
        report(f"Measuring {', '.join(missing)}: {analysis}")
        make(missing, finished=finished)
    return [outcome for outcome in outcomes.values() if outcome is not None]


def _kept(path: Path, system: str, made_of: dict[str, Any]) -> Outcome | None:
    if not path.is_file():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    if record.pop("made_of") != made_of or record["system"] != system:
        return None
    record["counts"] = np.asarray(record["counts"], dtype=np.int32)
    record["measurements"] = [Row(**values) for values in record["measurements"]]
    return Outcome(**record)
