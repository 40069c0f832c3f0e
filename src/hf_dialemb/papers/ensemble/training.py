"""Multi-granularity training: a baseline, its vectors of responses, L runs on them, ensembles.

Each stage is a run of ``dialemb train``, a process of ``accelerate launch``. A complete stage is
not run again, and a killed one resumes from its last checkpoint, so the same command again ends in
the same ensembles.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...data.examples import draw_candidates, read_candidates, write_candidates
from ...encoders.specs import find_encoder
from ...errors import InputError
from ...methods.method import Method
from ...methods.multi_granularity import MultiGranularityModel
from ...methods.ranker import load_ranker
from ...storage.files import check_writable, locked, write_json_atomically
from ...storage.run_folder import BASELINE, RunFolder, check_same
from ...training.arguments import read_recipe
from ...training.dialogues import training_dialogues
from ...training.training_record import described
from .plan import CANDIDATE_SEED, CHECKPOINTS, GRANULARITIES, SEEDS, EnsemblePlan

_ERROR = "dialemb: error: "


def train_ensemble(plan: EnsemblePlan, report: Callable[[str], None]) -> dict[str, Path]:
    """Train the baseline, the granularities and the seeds, and assemble the ensembles.

    Returns the folders of the baseline and the three ensembles, by name.
    """
    method = plan.method()
    if plan.similarity is not None:
        load_ranker(plan.similarity).model.check_embeds()
    check_writable(plan.output / "results.json")
    with locked(plan.output, "choose another --output"):
        for split in ("dev", "test"):
            _draw(plan, split, report)
        trained = all(is_complete(plan, name) for name in plan.members())
        if not trained:  # refuses too few responses before anything is trained
            _check_responses(plan, method)
        carry_out(plan, BASELINE, report)
        checkpoints = best_checkpoints(plan.run(BASELINE), plan.size)
        for name in (*plan.members(), *plan.seeds()[1:]):
            carry_out(plan, name, report)
        members = {
            GRANULARITIES: list(map(plan.run, plan.members())),
            CHECKPOINTS: checkpoints,
            SEEDS: list(map(plan.run, plan.seeds())),
        }
        for name, folders in members.items():
            assemble(plan.run(name), folders, report)
    return {name: plan.run(name) for name in (BASELINE, *members)}


def carry_out(plan: EnsemblePlan, name: str, report: Callable[[str], None]) -> None:
    """Carry out a run with a log, unless it is complete; raise InputError if it fails."""
    if is_complete(plan, name):
        return
    log = plan.output / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as lines:
        run = subprocess.run(
            command(plan, name), stdout=lines, stderr=subprocess.STDOUT, check=False
        )
    if run.returncode != 0:
        printed = log.read_text(encoding="utf-8", errors="replace").splitlines()
        reasons = [line.removeprefix(_ERROR) for line in printed if line.startswith(_ERROR)]
        reason = reasons[-1] if reasons else f"exit code {run.returncode}"
        raise InputError(f"run {name} failed ({reason}); see {log}, and run again")
    report(f"Trained {name}: {plan.run(name)}")


def command(plan: EnsemblePlan, name: str) -> list[str]:
    """Write the settings of a run to a file, and return the command that trains by it."""
    config = plan.output / "logs" / f"{name}.json"
    write_json_atomically(config, read_recipe(plan.config) | plan.values(name))
    launch = [sys.executable, "-m", "accelerate.commands.launch", "-m", "hf_dialemb.apps.cli"]
    return [*launch, "train", "--config", str(config)]


def is_complete(plan: EnsemblePlan, name: str) -> bool:
    """Return whether a run of a plan is at its end, with the settings of the plan."""
    folder = RunFolder(plan.run(name))
    if not folder.complete or not folder.settings_file.is_file():
        return False
    before = folder.settings()
    return all(
        before.get(key, value) == value for key, value in plan.settings(name).fingerprint().items()
    )


def best_checkpoints(run: Path, count: int) -> list[Path]:
    """Return a run's checkpoints that solved the dev candidates best; of equal ones the earlier."""
    log = RunFolder(run).report()["log"]
    score = "eval_contrastive_accuracy"
    scores = {entry["step"]: entry[score] for entry in log if score in entry}
    ordered = [
        run / f"checkpoint-{step}"
        for step in sorted(scores, key=lambda step: (-scores[step], step))
    ]
    folders = [folder for folder in ordered if folder.is_dir()]
    if len(folders) < count:
        raise InputError(
            f"{run}: got {len(folders)} checkpoints, expected {count} for an ensemble of them; "
            "save more often, train "
            "for more epochs or choose a smaller ensemble"
        )
    return folders[:count]


def _draw(plan: EnsemblePlan, split: str, report: Callable[[str], None]) -> None:
    """Draw the candidate sets of a split, unless they are there.

    Refuse others once runs were chosen by them.
    """
    chosen = plan.settings(BASELINE).method
    header: dict[str, Any] = {
        "corpus": plan.source(split),
        "split": split,
        "seed": CANDIDATE_SEED,
        "num_candidates": plan.candidates or chosen["num_candidates"],
        "responses": chosen["responses"],
    }
    most = plan.max_dialogues(split)
    if most is not None:
        header["max_dialogues"] = most
    path = plan.candidate_file(split)
    if path.is_file():
        before = read_candidates(path)[0]
        if before == header:
            return
        if plan.run(BASELINE).is_dir():
            raise InputError(
                f"{path}: drawn with {_listed(before)}, but asked for are {_listed(header)}, and "
                "the former chose the runs beside it; ask for these, or choose another --output"
            )
    selections = draw_candidates(
        plan.load(split), header["num_candidates"], header["responses"], CANDIDATE_SEED
    )
    write_candidates(path, selections, header)
    report(f"Wrote {len(selections):,} candidate sets of {plan.source(split)} ({split}): {path}")


def _listed(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def _check_responses(plan: EnsemblePlan, method: Method) -> None:
    """Refuse too few training responses for granularities, and others than complete runs had."""
    settings = plan.settings(plan.members()[0])
    dialogues = training_dialogues(settings.run, method, settings.sample_seed, lambda line: None)
    for name in (*plan.seeds(), *plan.members()):
        if is_complete(plan, name):
            check_same(RunFolder(plan.run(name)).data_file, described(dialogues), "a run")
    method.examples(dialogues, method.config_class(**settings.method), settings.training.seed)


def assemble(folder: Path, members: Sequence[Path], report: Callable[[str], None]) -> None:
    """Put members into one checkpoint, unless it was made of these."""
    file = folder / "model.safetensors"
    kept = RunFolder(folder).members_file
    names = [member.relative_to(folder.parent).as_posix() for member in members]
    made_of = [
        {"run": name, "weights": find_encoder(str(member)).fingerprint}
        for name, member in zip(names, members, strict=True)
    ]
    if (
        file.is_file()
        and kept.is_file()
        and json.loads(kept.read_text(encoding="utf-8")) == made_of
    ):
        return
    kept.unlink(missing_ok=True)
    model, tokenizer = MultiGranularityModel.from_members([str(member) for member in members])
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder, max_shard_size="1000GB")
    write_json_atomically(kept, made_of)
    report(f"Assembled {folder} of {', '.join(member.name for member in members)}")
