"""Multi-granularity training from one recipe: a baseline, its vectors of responses, L runs on them, the ensembles.

Each stage is a run of ``dialemb train`` of its own. A stage that is complete is not run again, and one that was killed
goes on from its last checkpoint, so the same command again ends in the same ensembles.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from ...corpora import load_examples
from ...corpora.candidates import draw_candidates, read_candidates, write_candidates
from ...errors import InputError
from ...methods.method import Method
from ...runs.files import check_writable, open_to_others, working_folder, write_atomically, write_json_atomically
from ...runs.folder import BASELINE, CHECKPOINTS, GRANULARITIES, SEEDS, RunFolder
from ...training.data import response_vectors, similarity_ranker, weights_digest
from ...training.dialogues import training_dialogues
from ...training.run import check_same_data
from .plan import CANDIDATE_SEED, EnsemblePlan
from .runs import Runs, is_complete


def train_ensemble(plan: EnsemblePlan, report: Callable[[str], None]) -> dict[str, Path]:
    """Trains the baseline, the granularities and the seeds, and assembles the ensembles.

    Returns the folders of the baseline and the three ensembles, by name.
    """
    method = plan.method()
    if plan.similarity is not None:
        similarity_ranker(plan.similarity)
    check_writable(plan.output / "results.json")
    with (
        _alone(plan.output),
        tqdm(total=2 * plan.size, desc="runs", unit="run", file=sys.stderr) as progress,
        Runs(plan, progress, report) as runs,
    ):
        for split in ("dev", "test"):
            _draw(plan, split, report)
        trained = all(is_complete(plan, name) for name in plan.members())
        responses = [] if trained else _responses(plan, method)  # too few of them are found before anything is trained
        runs.begin(plan.seeds()[: plan.jobs])  # the baseline, and as many beside it as can be
        runs.wait(BASELINE)
        checkpoints = best_checkpoints(plan.run(BASELINE), plan.size)
        if not trained:  # once, before runs that may go side by side ask for them
            response_vectors(responses, plan.granularity_model(), report)
        runs.begin([*plan.members(), *plan.seeds()[plan.jobs :]])
        runs.wait()
        return _ensembles(plan, checkpoints, report)


def _ensembles(plan: EnsemblePlan, checkpoints: list[Path], report: Callable[[str], None]) -> dict[str, Path]:
    folders = {
        GRANULARITIES: [plan.run(name) for name in plan.members()],
        CHECKPOINTS: checkpoints,
        SEEDS: [plan.run(name) for name in plan.seeds()],
    }
    for name, members in folders.items():
        assemble(plan.run(name), members, report)
    return {BASELINE: plan.run(BASELINE), **{name: plan.run(name) for name in folders}}


@contextmanager
def _alone(output: Path) -> Iterator[None]:
    """Keeps a second command out of a folder, and also the next one while a run that a killed one left is at work."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    output.mkdir(parents=True, exist_ok=True)
    with (output / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"{output}: another `dialemb ensemble`, or a run that it left, is at work here; wait for its end, or "
                "end it, or choose another --output"
            ) from None
        os.set_inheritable(lock.fileno(), True)  # runs hold it as well
        yield


def best_checkpoints(run: Path, count: int) -> list[Path]:
    """Finds a run's checkpoints that solved the dev candidates best."""
    log = RunFolder(run).report()["log"]
    scores = {
        entry["step"]: entry["eval_contrastive_accuracy"] for entry in log if "eval_contrastive_accuracy" in entry
    }
    found = [run / f"checkpoint-{step}" for step in sorted(scores, key=lambda step: (-scores[step], step))]
    found = [folder for folder in found if folder.is_dir()]
    if len(found) < count:
        raise InputError(
            f"{run}: got {len(found)} checkpoints, expected {count} for an ensemble of them; save more often, train "
            "for more epochs or choose a smaller ensemble"
        )
    return found[:count]


def _draw(plan: EnsemblePlan, split: str, report: Callable[[str], None]) -> None:
    """Draws the candidate sets of a split, unless the same ones are there; runs that they chose keep others out."""
    settings = plan.settings(BASELINE)
    chosen = settings.method
    header: dict[str, Any] = {
        "corpus": plan.source(split),
        "split": split,
        "seed": CANDIDATE_SEED,
        "num_candidates": plan.candidates or chosen["num_candidates"],
        "responses": chosen["responses"],
    }
    most = None if plan.gives_candidates else plan.max_dialogues(split)
    header |= {} if most is None else {"max_dialogues": most}
    path = plan.candidate_file(split)
    if path.is_file():
        before = read_candidates(path)[0]
        if before == header:
            return
        if plan.run(BASELINE).is_dir():
            raise InputError(
                f"{path}: drawn with {_settings(before)}, but asked for are {_settings(header)}, and the runs beside "
                "it were chosen by the former; ask for these, or choose another --output"
            )
    if plan.gives_candidates:
        selections = [item for item in load_examples(plan.corpus, plan.data_dir, split) if item.correct]
    else:
        selections = draw_candidates(plan.load(split), header["num_candidates"], chosen["responses"], CANDIDATE_SEED)
    write_candidates(path, selections, header)
    source = plan.source(split) if plan.own_files else f"{plan.corpus}/{split}"
    report(f"Wrote {len(selections):,} candidate sets of {source}: {path}")


def _settings(header: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in header.items())


def _responses(plan: EnsemblePlan, method: Method) -> list[str]:
    """Lists the training responses that granularities are made of."""
    settings = plan.settings(plan.members()[0])
    dialogues = training_dialogues(settings.run, method, settings.sample_seed, lambda line: None)
    for name in (*plan.seeds(), *plan.members()):
        if is_complete(plan, name):
            check_same_data(plan.run(name), dialogues)
    examples: Any = method.examples(dialogues, method.config_class(**settings.method), settings.training.seed)
    texts: list[str] = examples.response_texts
    return texts


def assemble(folder: Path, members: Sequence[Path], report: Callable[[str], None]) -> None:
    """Puts members into one checkpoint, unless it was made of these."""
    from ...methods.multi_granularity import MultiGranularityModel

    file, kept = folder / "model.safetensors", RunFolder(folder).members_file
    made_of = [
        {"run": member.relative_to(folder.parent).as_posix(), "weights": weights_digest(member)} for member in members
    ]
    if file.is_file() and kept.is_file() and json.loads(kept.read_text(encoding="utf-8")) == made_of:
        return
    kept.unlink(missing_ok=True)
    model, tokenizer = MultiGranularityModel.from_members([str(member) for member in members])
    tokenizer.save_pretrained(folder)
    model.config.save_pretrained(folder)
    write_atomically(file, lambda path: _save_weights(model, path))
    write_json_atomically(kept, made_of)
    report(f"Assembled {folder} of {', '.join(member.name for member in members)}")


def _save_weights(model: Any, path: Path) -> None:  # noqa: ANN401
    with working_folder(path.parent / "weights") as folder:
        model.save_pretrained(folder, max_shard_size="1000GB")
        (folder / "model.safetensors").replace(path)
        open_to_others(path.parent)
