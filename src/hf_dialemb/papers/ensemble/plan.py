"""The plan of multi-granularity training: its runs, their settings, and their folders."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...data import CORPORA, load_dialogues
from ...data.corpus_names import is_own
from ...dialogue import Dialogue
from ...errors import InputError
from ...methods import get_method
from ...methods.method import Method
from ...ranges import check_range
from ...storage.run_folder import BASELINE
from ...training.arguments import make_settings
from ...training.dialogues import drawn
from ...training.settings import Settings

GRANULARITIES = "multi-granularity"
CHECKPOINTS = "checkpoints"
SEEDS = "seeds"
"""The ensembles that stand beside the baseline, and their folders."""

CANDIDATE_SEED = 13  # draws the candidates that choose checkpoints and that measure the ensembles


@dataclass(frozen=True)
class EnsemblePlan:
    """What to train.

    An InputError says that a number is too small, or that files are missing or superfluous.
    """

    # the recipe of the baseline: a YAML file, or the name of one that comes with the package
    config: str
    # its dev split chooses checkpoints, its test split measures; or a file, with ``dev`` and
    # ``test``
    corpus: str
    output: Path  # the folder for everything
    # settings that win over the recipe's
    overrides: Mapping[str, Any] = field(default_factory=dict)
    size: int = 5  # L, the number of members of an ensemble
    data_dir: str | None = None
    candidates: int | None = None  # responses to rank; None: the recipe's num_candidates
    # folder of the ranker that compares responses; None: the baseline, which then embeds
    similarity: str | None = None
    analysis_dialogues: int | None = None  # that probes learn from; None: all
    dev: str | None = None  # a file of dialogues that choose checkpoints
    test: str | None = None  # and of dialogues that measure
    test_dialogues: int | None = None  # that measure, drawn once; None: all

    def __post_init__(self) -> None:
        check_range("size", self.size, 2)
        check_range("candidates", self.candidates, 2)
        check_range("analysis_dialogues", self.analysis_dialogues, 2)
        check_range("test_dialogues", self.test_dialogues, 1)
        own = self.corpus not in CORPORA and is_own(self.corpus)
        if own and None in (self.dev, self.test):
            raise InputError(
                f"corpus: got {self.corpus}, which has no splits; give files that choose "
                "checkpoints (--dev) and that "
                "measure (--test)"
            )
        if own and self.dev == self.test:
            raise InputError(
                f"dev, test: got {self.dev} for both, expected two files; measure on other "
                "dialogues"
            )
        if not own and (self.dev, self.test) != (None, None):
            raise InputError(f"dev, test: got files, but {self.corpus} has splits; leave them out")
        if "output_dir" in self.overrides:
            raise InputError(
                "output_dir: got a folder of one run, expected none; --output holds all runs"
            )

    def load(self, split: str) -> list[Dialogue]:
        """Load the dialogues that choose checkpoints (dev), or those that measure (test)."""
        if self.dev is None:
            dialogues = load_dialogues(
                self.corpus, data_dir=self.data_dir, split=split, strict=True
            )
        else:
            dialogues = load_dialogues(self.source(split), **self.settings(BASELINE).run.reading())
        most = self.max_dialogues(split)
        return dialogues[:most] if split == "dev" else drawn(dialogues, most, CANDIDATE_SEED)

    def max_dialogues(self, split: str) -> int | None:
        """Return the most dialogues of a split to take; None takes all."""
        return (
            self.test_dialogues
            if split == "test"
            else self.settings(BASELINE).run.max_dev_dialogues
        )

    def source(self, split: str) -> str:
        """Return the name or file that a split is read from."""
        return {"dev": self.dev, "test": self.test}[split] or self.corpus

    def run(self, name: str) -> Path:
        """Return the folder of a run or an ensemble."""
        return self.output / name

    def candidate_file(self, split: str) -> Path:
        """Return the file of the candidate sets of a split."""
        return self.output / "candidates" / f"{split}.jsonl"

    def values(self, name: str) -> dict[str, Any]:
        """Return the settings that a run has beside the recipe's."""
        dev_candidates = str(self.candidate_file("dev"))
        values = {
            **self.overrides,
            "output_dir": str(self.run(name)),
            "dev_candidates": dev_candidates,
        }
        if self.data_dir:
            values["data_dir"] = str(self.data_dir)
        if self.dev is not None:
            values |= {
                "corpus": [self.corpus],
                "dev_split": self.dev,
                "exclude": [self.dev, str(self.test)],
            }
        kind, _, number = name.partition("-")
        if name == BASELINE:
            return values
        seed = self.settings(BASELINE).training.seed
        values |= {"save_total_limit": 1, "seed": seed + int(number) - 1, "data_seed": seed}
        if kind == "granularity":
            values |= {"granularity": int(number), "num_granularities": self.size}
            values |= {"granularity_model": self.granularity_model()}
        return values

    def settings(self, name: str) -> Settings:
        """Return the settings of a run."""
        return make_settings(self.values(name), self.config)

    def method(self) -> Method:
        """Return the method of the recipe; raise InputError if it cannot make ensembles."""
        values = {
            name: value for name, value in self.values(BASELINE).items() if name != "dev_candidates"
        }
        settings = make_settings(values, self.config)
        method = get_method(settings.run.method)
        if method.kind != "responses":
            raise InputError(
                f"method: got {method.name}, expected a ranker of responses, such as dual_encoder"
            )
        if settings.run.checkpoint_selection == "last":
            raise InputError(
                "checkpoint_selection: got last, expected contrastive_accuracy; set it in the "
                "recipe"
            )
        model_class: Any = method.model_class
        if self.similarity is None and not model_class.embeds:
            raise InputError(
                f"similarity: got none, but {method.name} embeds no responses; give --similarity "
                "the folder of a "
                "ranker that does, such as a trained dual_encoder"
            )
        return method

    def granularity_model(self) -> str:
        """Return the folder of the ranker that compares responses."""
        return self.similarity or str(self.run(BASELINE))

    def members(self) -> list[str]:
        """Name the runs of the granularities, the closest first."""
        return [f"granularity-{level}" for level in range(1, self.size + 1)]

    def seeds(self) -> list[str]:
        """Name the runs that differ in the seed alone; the first is the baseline."""
        return [BASELINE, *(f"seed-{number}" for number in range(2, self.size + 1))]
