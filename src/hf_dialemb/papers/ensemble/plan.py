"""What multi-granularity training is to train: the runs, their settings, and where everything lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...corpora import CORPORA, get_corpus, load_dialogues
from ...corpora.own.reading import is_own
from ...dialogue import Dialogue
from ...errors import InputError
from ...methods import get_method
from ...methods.method import Method
from ...runs.folder import BASELINE
from ...training.arguments import parse
from ...training.dialogues import drawn
from ...training.settings import Settings

if TYPE_CHECKING:
    from transformers import TrainingArguments

CANDIDATE_SEED = 13
"""Of the candidates that choose checkpoints and that the ensembles are measured by."""


@dataclass(frozen=True)
class EnsemblePlan:
    """What is to be trained; an InputError says that a number is too small, or that files are missing or too many."""

    config: str  # the recipe of the baseline: a YAML file, or the name of one that comes with the package
    corpus: str  # its dev split chooses checkpoints, its test split measures; or a file, with those of dev and test
    output: Path  # the folder for everything
    overrides: tuple[str, ...] = ()  # ``--field value`` words that win over the recipe's
    size: int = 5  # L, how many members an ensemble has
    data_dir: str | None = None
    candidates: int | None = None  # how many responses are ranked for each context; None: the recipe's num_candidates
    similarity: str | None = None  # folder of the ranker that compares responses; None: the baseline, which then embeds
    jobs: int = 1  # how many runs at a time
    launch: tuple[str, ...] = ()  # further words for ``accelerate launch``
    analysis_dialogues: int | None = None  # that probes and fine-tuning learn from; None: all
    dev: str | None = None  # a file of one's own that chooses checkpoints
    test: str | None = None  # and one that measures
    test_dialogues: int | None = None  # how many measure, drawn once for all; None: all

    def __post_init__(self) -> None:
        fewest = {"size": 2, "jobs": 1, "candidates": 2, "analysis_dialogues": 2, "test_dialogues": 1}
        for name, least in fewest.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name}: got {value}, expected at least {least}; raise it")
        own = self.corpus not in CORPORA and is_own(self.corpus)
        if own and None in (self.dev, self.test):
            raise InputError(
                f"corpus: got {self.corpus}, which has no splits; give files of your own that choose checkpoints "
                "(--dev) and that measure (--test)"
            )
        if own and self.dev == self.test:
            raise InputError(f"dev, test: got {self.dev} for both, expected two files; keep what measures apart")
        if not own and (self.dev, self.test) != (None, None):
            raise InputError(f"dev, test: got files, but {self.corpus} has splits of its own; leave them out")
        if self.gives_candidates and self.test_dialogues is not None:
            raise InputError(
                f"test_dialogues: got {self.test_dialogues}, but {self.corpus} has contexts with candidates of its "
                "own, all of which measure; leave it out"
            )
        if "--output_dir" in self.overrides:
            raise InputError("output_dir: got a folder of one run, expected none; --output holds all runs")

    @property
    def own_files(self) -> bool:
        """Whether what is learnt from, and what chooses and measures, are files of one's own."""
        return self.dev is not None

    def load(self, split: str) -> list[Dialogue]:
        """Loads the dialogues that choose checkpoints (dev), or those that measure (test)."""
        if self.own_files:
            run = self.settings(BASELINE).run
            dialogues = load_dialogues(self.source(split), columns=run.columns, roles=run.roles)
        else:
            dialogues = load_dialogues(self.corpus, self.data_dir, split)
        most = self.max_dialogues(split)
        return dialogues[:most] if split == "dev" else drawn(dialogues, most, CANDIDATE_SEED)

    def max_dialogues(self, split: str) -> int | None:
        """Says how many dialogues of a split are taken at most."""
        return self.test_dialogues if split == "test" else self.settings(BASELINE).run.max_dev_dialogues

    @property
    def gives_candidates(self) -> bool:
        """Whether the corpus itself says which responses are to be ranked."""
        return self.corpus in CORPORA and get_corpus(self.corpus).kind == "response-selection"

    def source(self, split: str) -> str:
        """Names the corpus that a split is read from."""
        return {"dev": self.dev, "test": self.test}[split] or self.corpus

    def run(self, name: str) -> Path:
        """Says where a run or an ensemble of this name lies."""
        return self.output / name

    def candidate_file(self, split: str) -> Path:
        """Says where the candidate sets of a split lie."""
        return self.output / "candidates" / f"{split}.jsonl"

    def words(self, name: str) -> list[str]:
        """Returns the settings of a run on the command line: what it has beside the recipe's."""
        words = [*self.overrides, *self._own_words(), "--output_dir", str(self.run(name))]
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

    def _own_words(self) -> list[str]:
        if self.dev is None or self.test is None:
            return []
        return ["--corpus", self.corpus, "--dev_split", self.dev, "--exclude", self.dev, self.test]

    def method(self) -> Method:
        """Finds what the recipe trains."""
        settings = parse(self.config, [*self.overrides, *self._own_words()])
        method = get_method(settings.run.method)
        if method.kind != "responses":
            raise InputError(f"method: got {method.name}, expected a ranker of responses, such as dual_encoder")
        if settings.run.checkpoint_selection == "last":
            raise InputError("checkpoint_selection: got last, expected contrastive_accuracy; set it in the recipe")
        self._check_checkpoints(settings.training)
        model_class: Any = method.model_class
        if self.similarity is None and not model_class.embeds:
            raise InputError(
                f"similarity: got none, but {method.name} embeds no responses; give --similarity the folder of a "
                "ranker that does, such as a trained dual_encoder"
            )
        return method

    def _check_checkpoints(self, training: TrainingArguments) -> None:
        """Refuses what cannot leave enough checkpoints, as far as that is known before any data is read."""
        least, steps = float(self.size), training.max_steps
        if training.save_strategy == "epoch" and steps < 0:
            least = min(least, math.ceil(training.num_train_epochs))
        if training.save_strategy == "steps" and steps > 0 and training.save_steps >= 1:
            least = min(least, math.ceil(steps / training.save_steps))
        least = min(least, training.save_total_limit or self.size)
        if least < self.size:
            raise InputError(
                f"size: got {self.size}, but the baseline keeps only {least:.0f} checkpoints; save more often "
                "(save_strategy, save_steps), keep more (save_total_limit), train for more epochs or choose a smaller "
                "ensemble (--size)"
            )

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
