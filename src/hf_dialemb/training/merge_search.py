"""The weights of a merge, chosen where nothing is tested: on dev splits, by their labels or without any."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from ..corpora import CORPORA, load_dialogues
from ..dialogue import Dialogue
from ..encoders.loading import model_encoder
from ..errors import InputError
from ..evaluation.results.tables import table_lines
from ..methods.merged import MergedModel
from ..metrics.dialogue_retrieval import retrieval_scores
from ..metrics.vectors import unit_vectors
from ..runs.files import write_json_atomically
from ..runs.hardware import quick_reading

logger = logging.getLogger(__name__)

GRID = (0.0, 0.5, 1.0, 1.5, 2.0)
"""The weights that each part may get."""

WITHOUT_LABELS = "speakers:"
"""Before a set: measured by how well one speaker's words find the other's, which needs no labels."""

_TEMPERATURE = 0.05
_AS_GOOD = 0.1  # of what lies between the best and the worst try: less is chance, and costs what the backbone knew


@dataclass
class Search:
    """A search for weights of the folders that began with a backbone, one after the other, twice around.

    It goes by sets such as ``sgd/dev``, at most so many dialogues of each, whose retrieval by domain (MAP) is averaged;
    see `WITHOUT_LABELS`. Each try is cut to the rank, and written to the log; a search that was stopped reads them.
    """

    backbone: str
    parts: Sequence[str]
    by: Sequence[str]
    log_file: Path
    rank: int | None = None
    data_dir: str | Path | None = None
    limit: int = 300
    tries: list[dict[str, Any]] = field(default_factory=list)

    def best(self) -> dict[str, float]:
        """Searches, beginning with weights of one.

        Raises:
            InputError: A set is a test set or cannot be measured, or the log is of another search.
        """
        sets = {name: self._load(name) for name in self.by}
        self._read_log()
        weights, score = dict.fromkeys(self.parts, 1.0), -np.inf
        for _ in range(2):
            before = dict(weights)
            for part in self.parts:
                for value in GRID:
                    tried = {**weights, part: value}
                    found = self._measured(tried, sets)
                    if found > score:
                        weights, score = tried, found
            if weights == before:
                break
        return {part: weight for part, weight in self._least().items() if weight}

    def _least(self) -> dict[str, float]:
        """Chooses, of the tries that are as good as the best one, that which leaves the backbone the least."""
        figures = [each["mean"] for each in self.tries]
        enough = max(figures) - _AS_GOOD * (max(figures) - min(figures))
        good: list[dict[str, float]] = [each["weights"] for each in self.tries if each["mean"] >= enough]
        return min(good, key=lambda weights: sum(map(abs, weights.values())))

    def _measured(self, weights: dict[str, float], sets: dict[str, list[Dialogue]]) -> float:
        given = {part: weight for part, weight in weights.items() if weight}
        if not given:
            return -np.inf
        known = next((each for each in self.tries if each["weights"] == weights), None)
        if known is None:
            with quick_reading():
                figures = self._figures(given, sets)
            known = {"weights": weights, "figures": figures, "mean": float(np.mean([*figures.values()]))}
            self.tries.append(known)
            record = {"search": self._asked(), "tries": self.tries, "table": self._table()}
            write_json_atomically(self.log_file, record)
            told = ", ".join(f"{Path(part).name} {weight:g}" for part, weight in weights.items())
            logger.info("%s: %s", told, ", ".join(f"{name} {figure:.2f}" for name, figure in figures.items()))
        return float(known["mean"])

    def _table(self) -> list[str]:
        lines = []
        for each in self.tries:
            figures = [*each["figures"].values(), each["mean"]]
            lines.append([*(f"{weight:g}" for weight in each["weights"].values()), *map("{:.2f}".format, figures)])
        return table_lines((), [*(Path(part).name for part in self.parts), *self.by, "Mean"], lines)

    def _figures(self, weights: dict[str, float], sets: dict[str, list[Dialogue]]) -> dict[str, float]:
        model, tokenizer = MergedModel.from_parts(self.backbone, weights, self.rank)
        encoder = model_encoder(model, tokenizer, "merged")
        figures = {}
        for name, dialogues in sets.items():
            if name.startswith(WITHOUT_LABELS):
                sides = [[_said(dialogue, first) for dialogue in dialogues] for first in (True, False)]
                figures[name] = _agreement(*(encoder.encode_utterances(side) for side in sides))
            else:
                labels = [dialogue.domains[0] for dialogue in dialogues]
                figures[name] = 100 * retrieval_scores(encoder.encode(dialogues), labels)["map"]
        return figures

    def _load(self, name: str) -> list[Dialogue]:
        whole = name.removeprefix(WITHOUT_LABELS)
        corpus, _, split = whole.partition("/")
        if corpus in CORPORA and split not in ("dev", "train"):
            raise InputError(f"choose_by: got '{name}', expected a dev or train split; what is tested chooses nothing")
        dialogues = load_dialogues(whole, data_dir=self.data_dir)
        if name.startswith(WITHOUT_LABELS):
            fit = [dialogue for dialogue in dialogues if _said(dialogue, True) and _said(dialogue, False)]
        else:
            fit = [dialogue for dialogue in dialogues if len(dialogue.domains) == 1]
        if len(fit) < 2:
            wanted = "two speakers" if name.startswith(WITHOUT_LABELS) else "one label in domains"
            raise InputError(f"choose_by: got '{name}' without dialogues of {wanted}, expected some; choose another")
        rows = np.random.default_rng(0).permutation(len(fit))[: self.limit]
        return [fit[row] for row in sorted(rows)]

    def _asked(self) -> dict[str, Any]:
        names = [Path(part).name for part in self.parts]
        return {"backbone": self.backbone, "parts": names, "by": [*self.by], "rank": self.rank, "limit": self.limit}

    def _read_log(self) -> None:
        if not self.log_file.is_file():
            return
        record = json.loads(self.log_file.read_text(encoding="utf-8"))
        if record.get("search") != self._asked():
            raise InputError(f"{self.log_file}: holds another search ({record.get('search')}); choose another output")
        self.tries = record["tries"]


def _said(dialogue: Dialogue, by_first: bool) -> str:
    first = dialogue.turns[0].role
    return " ".join(turn.content for turn in dialogue.turns if (turn.role == first) == by_first)


def _agreement(ones: NDArray[np.float32], others: NDArray[np.float32]) -> float:
    """Returns minus the contrastive loss of finding what belongs together, both ways; higher is better."""
    scores = torch.from_numpy(unit_vectors(ones) @ unit_vectors(others).T / _TEMPERATURE)
    true = torch.arange(len(scores))
    return -float(cross_entropy(scores, true) + cross_entropy(scores.T, true)) / 2
