"""What the rankers of an ensemble know: probes and fine-tuning (Mehri and Eskenazi, section 5), resumable by system.

Each outcome is kept in a file with the digests of the checkpoints, and is not made again of the same ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...corpora import CORPORA
from ...dialogue import Dialogue
from ...evaluation.results.rows import Row
from ...methods import get_method
from ...methods.ranking import LoadedRanker
from ...runs.files import write_json_atomically
from ...runs.folder import BASELINE
from ...training.arguments import make_settings
from ...training.data import weights_digest
from ...training.dialogues import training_dialogues
from ..tasks.act_fine_tuning import run_act_fine_tuning
from ..tasks.context_labels import ACTS, WORDS
from ..tasks.linear_layer import Outcome
from ..tasks.probes import run_probes
from .plan import EnsemblePlan

RANDOM, FINE_TUNED = "Random Init", "Fine-tuned"
PROBE_SEEDS, TUNING_SEEDS = (0, 1, 2), (0,)

_Systems = Mapping[str, Sequence[LoadedRanker]]


def analyse(
    plan: EnsemblePlan, systems: _Systems, whole: Sequence[str], baseline: str, report: Callable[[str], None]
) -> Iterator[list[Outcome]]:
    """Probe all systems and fine-tune those that the paper does, or read earlier outcomes."""
    train = labelled = _training_dialogues(plan)
    if plan.corpus in CORPORA:  # other corpora name acts otherwise
        labelled = _training_dialogues(plan, corpus=f"{plan.corpus}/train")
    dev, test = plan.load("dev"), plan.load("test")
    single, bfloat16 = systems[baseline], plan.settings(BASELINE).training.bf16  # rankers learn on as they were trained
    probe = partial(run_probes, seeds=PROBE_SEEDS)
    tune = partial(run_act_fine_tuning, seeds=TUNING_SEEDS, bfloat16=bfloat16)
    of_words = {"parts": {"train": train, "dev": dev, "test": test}, "target": WORDS}
    analyses: list[tuple[str, _Systems, Callable[..., object]]] = [
        ("word_probes", systems, partial(probe, **of_words)),
        ("word_fine_tuning", {FINE_TUNED: single}, partial(tune, **of_words, untrained=FINE_TUNED)),
    ]
    if all(any(turn.dialogue_acts for dialogue in part for turn in dialogue.turns) for part in (labelled, dev, test)):
        of_acts = {"parts": {"train": labelled, "dev": dev, "test": test}, "target": ACTS}
        tuned = {RANDOM: single, **{name: systems[name] for name in whole}}
        analyses += [
            ("act_probes", systems, partial(probe, **of_acts)),
            ("act_fine_tuning", tuned, partial(tune, **of_acts, untrained=RANDOM)),
        ]
    else:
        report(f"{plan.corpus} has no dialogue acts: they are not analysed")
    made_of: dict[str, Any] = {"dialogues": plan.analysis_dialogues, "test_dialogues": plan.test_dialogues}
    made_of |= {run: weights_digest(plan.run(run)) for run in (*plan.seeds(), *plan.members())}
    for analysis, measured, make in analyses:
        files = {name: plan.output / "analyses" / f"{analysis}-{place}.json" for place, name in enumerate(measured, 1)}
        yield _outcomes(measured, files, make, made_of, report)


def _training_dialogues(plan: EnsemblePlan, **changes: Any) -> list[Dialogue]:  # noqa: ANN401 - settings
    """Load the dialogues that the recipe trains on, without those of evaluation sets."""
    if plan.analysis_dialogues is not None:
        changes["max_dialogues"] = plan.analysis_dialogues
    settings = make_settings(plan.values(BASELINE) | changes, plan.config)
    return training_dialogues(settings.run, get_method(settings.run.method), settings.sample_seed, lambda line: None)


def _outcomes(
    systems: _Systems,
    files: Mapping[str, Path],
    make: Callable[..., object],
    made_of: dict[str, Any],
    report: Callable[[str], None],
) -> list[Outcome]:
    """Read the outcomes that are there, and make the others; each is written as soon as it is made."""
    outcomes = {name: _read(path, name, made_of) for name, path in files.items()}
    missing = {name: systems[name] for name, outcome in outcomes.items() if outcome is None}

    def finished(outcome: Outcome) -> None:
        outcomes[outcome.system] = outcome
        record = {"made_of": made_of, **asdict(outcome), "counts": outcome.counts.tolist()}
        write_json_atomically(files[outcome.system], record)

    if missing:
        report(f"Measuring {', '.join(missing)}: {next(iter(files.values())).stem.rpartition('-')[0]}")
        make(missing, finished=finished)
    return [outcome for outcome in outcomes.values() if outcome is not None]


def _read(path: Path, system: str, made_of: dict[str, Any]) -> Outcome | None:
    if not path.is_file():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    if record.pop("made_of") != made_of or record["system"] != system:
        return None
    record["counts"] = np.asarray(record["counts"], dtype=np.int32)
    record["measurements"] = [Row(**values) for values in record["measurements"]]
    return Outcome(**record)
