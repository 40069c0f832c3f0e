"""Multi-granularity training from one recipe: a baseline, its vectors of responses, L runs on them, the ensembles.

Each stage is a run of ``dialemb train`` of its own, under ``accelerate launch``. A stage that is complete is not run
again, and one that was killed goes on from its last checkpoint, so the same command again ends in the same ensembles.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..corpora import CORPORA, get_corpus, load_dialogues, load_examples
from ..corpora.candidates import draw_candidates, read_candidates, write_candidates
from ..models import get_method
from ..models.config import RankerConfig
from ..models.errors import InputError
from ..models.files import check_writable, write_atomically
from .arguments import Settings, parse
from .dialogues import training_dialogues
from .ranking import response_vectors
from .run import REPORT_FILE, SETTINGS_FILE

CANDIDATE_SEED = 13
"""Of the candidates that choose checkpoints and that the ensembles are measured by."""

BASELINE, GRANULARITIES, CHECKPOINTS, SEEDS = "baseline", "multi-granularity", "checkpoints", "seeds"
"""The single model, and the three ensembles: of L granularities, of one run's best checkpoints, of L seeds."""


@dataclass(frozen=True)
class EnsemblePlan:
    """What is to be trained.

    Attributes:
        config: The recipe of the baseline: a YAML file, or the name of one that comes with the package.
        corpus: The corpus whose dev split chooses checkpoints, and whose test split measures.
        output: Folder for everything.
        overrides: ``--field value`` words that win over the recipe's.
        size: L, how many members an ensemble has.
        data_dir: Folder that holds the corpora.
        candidates: How many responses are to be ranked for each context; None takes the recipe's num_candidates.
        similarity: The folder of the ranker that tells how similar responses are; None takes the baseline, which must
            embed them.
        jobs: How many runs at a time.
        launch: Further words for ``accelerate launch``.
        analysis_dialogues: How many training dialogues probes and fine-tuning learn from; None takes all.

    Raises:
        InputError: A number is too small.
    """

    config: str
    corpus: str
    output: Path
    overrides: tuple[str, ...] = ()
    size: int = 5
    data_dir: str | None = None
    candidates: int | None = None
    similarity: str | None = None
    jobs: int = 1
    launch: tuple[str, ...] = field(default=())
    analysis_dialogues: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("size", 2), ("jobs", 1), ("analysis_dialogues", 2)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name}: got {value}, expected at least {least}; raise it")

    def run(self, name: str) -> Path:
        """Says where a run or an ensemble of this name lies."""
        return self.output / name

    def candidate_file(self, split: str) -> Path:
        """Says where the candidate sets of a split lie."""
        return self.output / "candidates" / f"{split}.jsonl"

    def words(self, name: str) -> list[str]:
        """Returns the settings of a run on the command line: what it has beside the recipe's."""
        words = [*self.overrides, "--output_dir", str(self.run(name))]
        words += ["--dev_candidates", str(self.candidate_file("dev"))]
        words += ["--data_dir", self.data_dir] if self.data_dir else []
        kind, _, number = name.partition("-")
        if name == BASELINE:
            return words
        seed = self.settings(BASELINE).training.seed
        words += ["--save_total_limit", "1", "--seed", str(seed + int(number) - 1), "--data_seed", str(seed)]
        if kind == "granularity":
            words += ["--granularity", number, "--num_granularities", str(self.size)]
            words += ["--granularity_model", self.granularity_model()]
        return words

    def settings(self, name: str) -> Settings:
        """Parses the settings of a run."""
        return parse(self.config, self.words(name))

    def granularity_model(self) -> str:
        """Returns the folder of the ranker that tells how similar responses are."""
        return self.similarity or str(self.run(BASELINE))

    def members(self) -> list[str]:
        """Names the runs of the granularities, the closest first."""
        return [f"granularity-{level}" for level in range(1, self.size + 1)]

    def seeds(self) -> list[str]:
        """Names the runs that differ in nothing but the seed; the first is the baseline."""
        return [BASELINE, *(f"seed-{number}" for number in range(2, self.size + 1))]


def train_ensemble(plan: EnsemblePlan, report: Callable[[str], None]) -> dict[str, Path]:
    """Trains the baseline, the granularities and the seeds, and assembles the ensembles.

    Args:
        plan: What is to be trained.
        report: Receives one line per fact worth telling.

    Returns:
        The folders of the baseline and the three ensembles, by name.

    Raises:
        InputError: A setting is wrong, a corpus is not at hand, or a run failed.
    """
    check_writable(plan.output / "results.json")
    settings = plan.settings(BASELINE)
    if not issubclass(get_method(settings.run.method).config_class, RankerConfig):
        raise InputError(f"method: got {settings.run.method}, expected a ranker of responses, such as dual_encoder")
    if settings.run.checkpoint_selection == "last":
        raise InputError("checkpoint_selection: got last, expected contrastive_accuracy; set it in the recipe")
    for split in ("dev", "test"):
        _draw(plan, split, report)
    with tqdm(total=2 * plan.size, desc="runs", unit="run", file=sys.stderr) as progress:
        _train(plan, [BASELINE], progress, report)
        _encode(plan, report)
        _train(plan, [*plan.members(), *plan.seeds()[1:]], progress, report)
    folders = {
        GRANULARITIES: [plan.run(name) for name in plan.members()],
        CHECKPOINTS: best_checkpoints(plan.run(BASELINE), plan.size),
        SEEDS: [plan.run(name) for name in plan.seeds()],
    }
    for name, members in folders.items():
        _assemble(plan.run(name), members, report)
    return {BASELINE: plan.run(BASELINE), **{name: plan.run(name) for name in folders}}


def best_checkpoints(run: Path, count: int) -> list[Path]:
    """Finds a run's checkpoints that solved the dev candidates best.

    Args:
        run: Its folder.
        count: How many.

    Returns:
        Their folders, the best first; of equal ones the earlier.

    Raises:
        InputError: The run has fewer.
    """
    log = json.loads((run / REPORT_FILE).read_text(encoding="utf-8"))["log"]
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
    """Draws the candidate sets of a split, unless the same ones are there."""
    settings = plan.settings(BASELINE)
    chosen = settings.method
    header: dict[str, Any] = {
        "corpus": plan.corpus,
        "split": split,
        "seed": CANDIDATE_SEED,
        "num_candidates": plan.candidates or chosen["num_candidates"],
        "responses": chosen["responses"],
    }
    given = plan.corpus in CORPORA and get_corpus(plan.corpus).kind == "response-selection"
    most = settings.run.max_dev_dialogues if split == "dev" and not given else None
    header |= {} if most is None else {"max_dialogues": most}
    path = plan.candidate_file(split)
    if path.is_file() and read_candidates(path)[0] == header:
        return
    if given:
        selections = [item for item in load_examples(plan.corpus, plan.data_dir, split) if item.correct]
    else:
        dialogues = load_dialogues(plan.corpus, plan.data_dir, split)[:most]
        selections = draw_candidates(dialogues, header["num_candidates"], chosen["responses"], CANDIDATE_SEED)
    write_candidates(path, selections, header)
    report(f"Wrote {len(selections):,} candidate sets of {plan.corpus}/{split}: {path}")


def _is_complete(plan: EnsemblePlan, name: str) -> bool:
    folder = plan.run(name)
    if not (folder / REPORT_FILE).is_file() or not (folder / SETTINGS_FILE).is_file():
        return False
    before = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    return all(before.get(key) == value for key, value in plan.settings(name).fingerprint().items())


def _train(plan: EnsemblePlan, names: Sequence[str], progress: Any, report: Callable[[str], None]) -> None:  # noqa: ANN401
    """Runs what is not complete, several at a time if the plan says so."""
    missing = [name for name in names if not _is_complete(plan, name)]
    progress.update(len(names) - len(missing))

    def start(name: str) -> None:
        _launch(plan, name)
        progress.update()

    with ThreadPoolExecutor(plan.jobs) as pool:
        for name, done in [(name, pool.submit(start, name)) for name in missing]:
            done.result()
            report(f"Trained {name}: {plan.run(name)}")


def _launch(plan: EnsemblePlan, name: str) -> None:
    words = [sys.executable, "-m", "accelerate.commands.launch", *plan.launch, "-m", "hf_dialemb.cli", "train"]
    words += ["--config", plan.config, *plan.words(name)]
    environment = dict(os.environ)
    if plan.jobs > 1:  # several runs share the cores
        environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // plan.jobs)))
    log = plan.output / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as lines:
        code = subprocess.run(words, env=environment, stdout=lines, stderr=subprocess.STDOUT, check=False).returncode
    if code != 0:
        last = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if "error:" in line][
            -1:
        ]
        raise InputError(f"run {name} failed ({' '.join(last) or f'exit code {code}'}); see {log}, and run again")


def _encode(plan: EnsemblePlan, report: Callable[[str], None]) -> None:
    """Embeds the training responses once, before runs that may go side by side ask for them."""
    settings = plan.settings("granularity-1")
    method = get_method(settings.run.method)
    if all(_is_complete(plan, name) for name in plan.members()):
        return
    dialogues = training_dialogues(settings.run, method, settings.sample_seed, lambda line: None)
    examples: Any = method.examples(dialogues, method.config_class(**settings.method), settings.training.seed)
    response_vectors(examples.response_texts, plan.granularity_model(), report)


def _assemble(folder: Path, members: Sequence[Path], report: Callable[[str], None]) -> None:
    """Puts members into one checkpoint, unless that is newer than they are."""
    from ..models.multi_granularity import MultiGranularityModel

    file = folder / "model.safetensors"
    newest = max(path.stat().st_mtime for member in members for path in member.glob("model*.safetensors"))
    if file.is_file() and file.stat().st_mtime > newest:
        return
    model, tokenizer = MultiGranularityModel.from_members([str(member) for member in members])
    tokenizer.save_pretrained(folder)
    model.config.save_pretrained(folder)
    write_atomically(file, lambda path: _save_weights(model, path))
    report(f"Assembled {folder} of {', '.join(member.name for member in members)}")


def _save_weights(model: Any, path: Path) -> None:  # noqa: ANN401
    import tempfile

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        model.save_pretrained(folder, max_shard_size="1000GB")
        (Path(folder) / "model.safetensors").replace(path)
