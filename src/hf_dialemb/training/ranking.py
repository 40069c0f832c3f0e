"""What the training of rankers asks for beside dialogues: candidates that choose a checkpoint, vectors of responses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ..corpora.candidates import read_candidates
from ..corpora.examples import ResponseSelection
from ..models.errors import InputError
from ..models.files import write_atomically
from ..models.ranker import RankingExample
from ..models.ranking import encode_responses, load_ranker
from ..models.ranking_examples import GivenExamples


def given_examples(path: str) -> GivenExamples:
    """Reads the candidate sets that choose a checkpoint.

    Args:
        path: A file of them.

    Returns:
        The examples; sets without a correct response are passed over.

    Raises:
        InputError: The file cannot be read, or no set has a correct response.
    """
    _, selections = read_candidates(path)
    examples = [ranking_example(selection) for selection in selections if selection.correct]
    if not examples:
        raise InputError(f"{path}: got no set with a correct response, expected at least one; draw candidates again")
    return GivenExamples(examples)


def ranking_example(selection: ResponseSelection) -> RankingExample:
    """Puts the correct response of a candidate set first."""
    true = selection.correct[0]
    others = (text for place, text in enumerate(selection.responses) if place != true)
    return RankingExample(selection.context, (selection.responses[true], *others))


def response_vectors(responses: Sequence[str], model: str, report: Callable[[str], None]) -> np.ndarray:
    """Embeds responses with a trained ranker, or reads their vectors if that was done before.

    Args:
        responses: N distinct texts.
        model: The folder of a ranker that embeds; the vectors are kept in it.
        report: Receives one line per fact worth telling.

    Returns:
        (N, D) float32.

    Raises:
        InputError: The folder holds no such ranker.
    """
    from safetensors import safe_open
    from safetensors.numpy import save_file

    ranker = load_ranker(model)
    weights = hashlib.sha256()
    for file in sorted(Path(model).glob("*.safetensors")):
        if not file.name.startswith("response_vectors-"):
            weights.update(file.read_bytes())
    key = hashlib.sha256((weights.hexdigest() + json.dumps(list(responses))).encode()).hexdigest()
    kept = Path(model) / f"response_vectors-{key[:8]}.safetensors"
    if kept.is_file():
        with safe_open(kept, framework="np") as opened:
            found: np.ndarray = opened.get_tensor("vectors")
            return found
    vectors = encode_responses(ranker, responses, show_progress=True)
    write_atomically(kept, lambda path: save_file({"vectors": vectors}, path))
    report(f"Embedded {len(responses):,} responses with {model}")
    return vectors
