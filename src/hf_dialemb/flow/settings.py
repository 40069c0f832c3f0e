"""What a request for a flow says: numbers for each role, ready vectors, and what of them cannot be right."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.errors import InputError
from .clustering import Clustering, cluster_by_role
from .flow import Utterances


def by_role(option: str, text: str | None, number: type[int] | type[float]) -> Any:  # noqa: ANN401 - of either kind
    """Reads ``"12"`` or ``"user=10,assistant=14"``.

    Args:
        option: What the errors call it.
        text: What was given; None for nothing.
        number: The kind of the numbers.

    Returns:
        A number, or one for each role that is named; None for nothing.

    Raises:
        InputError: It has another form, or names a role twice.
    """
    if text is None:
        return None
    try:
        if "=" not in text:
            return number(text)
        pairs = [(role.strip(), number(value)) for role, value in (part.split("=") for part in text.split(","))]
        if len(dict(pairs)) < len(pairs):
            raise ValueError
    except ValueError:
        example = "12 or user=10,assistant=14" if number is int else "0.6 or user=0.5,assistant=0.6"
        raise InputError(
            f"--{option}: got '{text}', expected a number, or one for each role once, such as {example}; correct it"
        ) from None
    return dict(pairs)


def check_roles(given: Mapping[str, Any], said: Utterances) -> None:
    """Makes sure that numbers are for roles that speak, and that none has two.

    Args:
        given: Of each option what `by_role` read.
        said: The utterances.

    Raises:
        InputError: They are not.
    """
    speakers = sorted(set(said.roles))
    decided: dict[str, str] = {}
    for option, value in given.items():
        for role in value if isinstance(value, Mapping) else speakers if value is not None else ():
            if role not in speakers:
                raise InputError(f"--{option}: got role '{role}', expected one of {', '.join(speakers)}; correct it")
            if role in decided:
                raise InputError(f"role {role}: got --{decided[role]} and --{option}, expected one; leave one out")
            decided[role] = option


def clustered(
    vectors: NDArray[np.float32],
    said: Utterances,
    number: int | Mapping[str, int] | None,
    threshold: float | Mapping[str, float] | None,
    seed: int,
) -> dict[str, Clustering]:
    """Clusters utterances as `hf_dialemb.flow.clustering.cluster_by_role` does, with errors that name options.

    Args:
        vectors: One for each utterance, ``(N, D)``.
        said: The utterances, N of them.
        number: What `by_role` read of how many clusters there shall be.
        threshold: The same of the distance.
        seed: Of what is drawn.

    Returns:
        The clusters of each role.

    Raises:
        InputError: A number or threshold is not within bounds, or a vector has NaN or infinity.
    """
    try:
        return cluster_by_role(vectors, said.roles, number=number, threshold=threshold, seed=seed, progress=True)
    except InputError as error:
        raise InputError(str(error).replace("number:", "--clusters:").replace("threshold:", "--threshold:")) from None
    except ValueError as error:
        raise InputError(f"{error}; choose another --model, or mend --vectors") from None


def vectors_digest(path: Path) -> str:
    """Returns the digest of a file of vectors.

    Raises:
        InputError: There is no such file.
    """
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "no such file"
        raise InputError(f"--vectors {path}: got {kind}, expected a .npy file; write one by numpy.save")
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_vectors(path: Path, count: int) -> NDArray[np.float32]:
    """Reads ready vectors.

    Args:
        path: A ``.npy`` file.
        count: How many there shall be, N.

    Returns:
        The vectors, ``(N, D)``.

    Raises:
        InputError: The file holds something else.
    """
    try:
        vectors = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"--vectors {path}: got no array ({reason}); write it by numpy.save") from None
    if not isinstance(vectors, np.ndarray):
        raise InputError(f"--vectors {path}: got several arrays, expected one; write it by numpy.save")
    if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1] or vectors.dtype.kind != "f":
        raise InputError(
            f"--vectors {path}: got {vectors.dtype} of shape {vectors.shape}, expected floats of shape ({count}, D), "
            "one row for each utterance in order; write them again"
        )
    with np.errstate(over="ignore"):
        found = vectors.astype(np.float32)
    if not np.isfinite(found).all():
        raise InputError(f"--vectors {path}: got NaN, infinity or numbers beyond float32, expected finite ones")
    return found
