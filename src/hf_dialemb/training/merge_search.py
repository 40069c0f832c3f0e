"""The weights of a merge, chosen on dev splits: by their labels, or without any."""

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
_AS_GOOD = 0.1  # of the range between the best and the worst try: less is chance, and costs the backbone's knowledge


@dataclass
class Search:
    """A coordinate search for the weights of trainings of one backbone, twice around.

    It averages the retrieval by domain (MAP) of sets such as ``sgd/dev``, on at most ``limit`` dialogues of each; see
    `WITHOUT_LABELS`. Each try is cut to the rank, and written to the log; a stopped search reads its tries from there.
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
        """Search, starting with weights of one.

        Raises:
            InputError: A set is a test set or cannot be measured, or the log is of another search.
        """
        sets = {name: self._load(name) for name in self.by}
        self._read_log()
        weights, best = dict.fromkeys(self.parts, 1.0), -np.inf
        for _ in range(2):
            before = dict(weights)
            for part in self.parts:
                for value in GRID:
                    tried = {**weights, part: value}
                    score = self._score(tried, sets)
                    if score > best:
                        weights, best = tried, score
            if weights == before:
                break
        return {part: weight for part, weight in self._smallest().items() if weight}

    def _smallest(self) -> dict[str, float]:
        """Return the smallest weights of the tries that are as good as the best: they change the backbone least."""
        scores = [record["mean"] for record in self.tries]
        enough = max(scores) - _AS_GOOD * (max(scores) - min(scores))
        good: list[dict[str, float]] = [record["weights"] for record in self.tries if record["mean"] >= enough]
        return min(good, key=lambda weights: sum(map(abs, weights.values())))

    def _score(self, weights: dict[str, float], sets: dict[str, list[Dialogue]]) -> float:
        given = {part: weight for part, weight in weights.items() if weight}
        if not given:
            return -np.inf
        record = next((record for record in self.tries if record["weights"] == weights), None)
        if record is None:
            with quick_reading():
                figures = self._figures(given, sets)
            record = {"weights": weights, "figures": figures, "mean": float(np.mean([*figures.values()]))}
            self.tries.append(record)
            log = {"search": self._request(), "tries": self.tries, "table": self._table()}
            write_json_atomically(self.log_file, log)
            names = ", ".join(f"{Path(part).name} {weight:g}" for part, weight in weights.items())
            logger.info("%s: %s", names, ", ".join(f"{name} {figure:.2f}" for name, figure in figures.items()))
        return float(record["mean"])

    def _table(self) -> list[str]:
        lines = []
        for record in self.tries:
            figures = [*record["figures"].values(), record["mean"]]
            lines.append([*(f"{weight:g}" for weight in record["weights"].values()), *map("{:.2f}".format, figures)])
        return table_lines((), [*(Path(part).name for part in self.parts), *self.by, "Mean"], lines)

    def _figures(self, weights: dict[str, float], sets: dict[str, list[Dialogue]]) -> dict[str, float]:
        model, tokenizer = MergedModel.from_parts(self.backbone, weights, self.rank)
        encoder = model_encoder(model, tokenizer, "merged")
        figures = {}
        for name, dialogues in sets.items():
            if name.startswith(WITHOUT_LABELS):
                sides = [[_words_of(dialogue, first) for dialogue in dialogues] for first in (True, False)]
                figures[name] = _agreement(*(encoder.encode_utterances(side) for side in sides))
            else:
                labels = [dialogue.domains[0] for dialogue in dialogues]
                figures[name] = 100 * retrieval_scores(encoder.encode(dialogues), labels)["map"]
        return figures

    def _load(self, name: str) -> list[Dialogue]:
        corpus, _, split = name.removeprefix(WITHOUT_LABELS).partition("/")
        if corpus in CORPORA and split not in ("dev", "train"):
            raise InputError(f"choose_by: got '{name}', expected a dev or train split; test sets choose nothing")
        dialogues = load_dialogues(name.removeprefix(WITHOUT_LABELS), data_dir=self.data_dir)
        if name.startswith(WITHOUT_LABELS):
            wanted = "two speakers"
            fit = [dialogue for dialogue in dialogues if len({turn.role for turn in dialogue.turns}) > 1]
        else:
            wanted = "one label in domains"
            fit = [dialogue for dialogue in dialogues if len(dialogue.domains) == 1]
        if len(fit) < 2:
            raise InputError(f"choose_by: got '{name}' without dialogues of {wanted}, expected some; choose another")
        rows = np.random.default_rng(0).permutation(len(fit))[: self.limit]
        return [fit[row] for row in sorted(rows)]

    def _request(self) -> dict[str, Any]:
        names = [Path(part).name for part in self.parts]
        return {"backbone": self.backbone, "parts": names, "by": [*self.by], "rank": self.rank, "limit": self.limit}

    def _read_log(self) -> None:
        if not self.log_file.is_file():
            return
        record = json.loads(self.log_file.read_text(encoding="utf-8"))
        if record.get("search") != self._request():
            raise InputError(f"{self.log_file}: holds another search ({record.get('search')}); choose another output")
        self.tries = record["tries"]


def _words_of(dialogue: Dialogue, first: bool) -> str:
    """Join the turns of the first speaker, or of all others."""
    role = dialogue.turns[0].role
    return " ".join(turn.content for turn in dialogue.turns if (turn.role == role) == first)


def _agreement(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    """Return minus the contrastive loss of matching rows, both ways; higher is better."""
    scores = torch.from_numpy(unit_vectors(left) @ unit_vectors(right).T / _TEMPERATURE)
    true = torch.arange(len(scores))
    return -float(cross_entropy(scores, true) + cross_entropy(scores.T, true)) / 2
