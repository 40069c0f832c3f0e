"""What the training of rankers asks for beside dialogues: candidates that choose a checkpoint, vectors of responses."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..corpora.candidates import read_candidates
from ..corpora.examples import ResponseSelection
from ..models.dialogue import plain
from ..models.errors import InputError
from ..models.ranker import RankingExample
from ..models.ranking import LoadedRanker, encode_responses, load_ranker
from ..models.ranking_examples import GivenExamples
from ..runs.files import kept_vectors
from .settings import Report

_VECTORS = "response_vectors-"  # how files of them begin


def given_examples(path: str) -> GivenExamples:
    """Reads the candidate sets that choose a checkpoint."""
    _, selections = read_candidates(path)
    examples = [ranking_example(selection) for selection in selections if selection.correct]
    if not examples:
        raise InputError(f"{path}: got no set with a correct response, expected at least one; draw candidates again")
    size = min(len(example.candidates) for example in examples)
    if size < 2:
        raise InputError(
            f"{path}: got a set whose responses are all correct, expected two different ones at least; draw candidates "
            "again"
        )
    return GivenExamples([RankingExample(example.context, example.candidates[:size]) for example in examples])


def ranking_example(selection: ResponseSelection) -> RankingExample:
    """Puts the correct response of a candidate set first; others that are correct, or say the same, are left out."""
    correct = {plain(selection.responses[place]) for place in selection.correct}
    others = (text for text in selection.responses if plain(text) not in correct)
    return RankingExample(selection.context, (selection.responses[selection.correct[0]], *others))


def response_vectors(responses: Sequence[str], model: str, report: Report) -> np.ndarray:
    """Embeds N responses with a trained ranker, (N, D) float32, or reads their vectors if that was done before."""
    ranker = similarity_ranker(model)
    key = hashlib.sha256((weights_digest(Path(model)) + json.dumps(list(responses))).encode()).hexdigest()

    def embed() -> np.ndarray:
        vectors = encode_responses(ranker, responses, show_progress=True)
        report(f"Embedded {len(responses):,} responses with {model}")
        return vectors

    return kept_vectors(Path(model) / f"{_VECTORS}{key[:8]}.safetensors", embed)


def similarity_ranker(model: str) -> LoadedRanker:
    """Loads the ranker that tells how similar responses are."""
    if not Path(model).is_dir():
        raise InputError(f"similarity: got {model}, expected the folder of a trained ranker; check the name")
    ranker = load_ranker(model)
    if not ranker.model.embeds:
        raise InputError(
            f"similarity: got {model}, a {ranker.method.name}, which embeds no responses; give a ranker that does, "
            "such as a trained dual_encoder"
        )
    return ranker


def weights_digest(folder: Path) -> str:
    """Returns the SHA-256 of a checkpoint's weights, in hexadecimal digits."""
    weights = hashlib.sha256()
    for file in sorted(folder.glob("*.safetensors")):
        if not file.name.startswith(_VECTORS):
            weights.update(file.read_bytes())
    return weights.hexdigest()
