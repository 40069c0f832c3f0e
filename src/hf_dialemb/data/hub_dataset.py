"""Datasets of dialogues: their columns, and the rows of those on the Hub as a stream."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from ..errors import InputError, unknown_name
from .corpus_names import files_of

Rows = Iterable[dict[str, Any]]
_ALSO_CALLED: dict[str, tuple[str, ...]] = {"dev": ("validation", "valid", "val")}


def dataset_folder(folder: Path) -> Any:
    """Return the dataset of ``save_to_disk``, or of shards of Parquet by split; None of others.

    Beside other files that are read, Parquet may hold vectors, so such a folder is no dataset.
    """
    if any((folder / name).is_file() for name in ("state.json", "dataset_dict.json")):
        from datasets import load_from_disk

        return load_from_disk(folder)
    shards = any(next(folder.glob(pattern), None) for pattern in ("*.parquet", "*/*.parquet"))
    if shards and not any(files_of(folder)):
        from datasets import load_dataset

        return load_dataset(str(folder), streaming=True)
    return None


def hub_rows(
    identifier: str, split: str, revision: str | None = None, token: str | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the rows of a dataset on the Hub as a stream, each with its place, without a copy of it.

    Args:
        identifier: The dataset, such as ``org/name`` or ``org/name:config``.
        split: One of its splits, or ``all``.
        revision: A branch, a tag or a commit.
        token: A token of the Hub; by default that of the login.

    Raises:
        InputError: The dataset cannot be reached, or has no such split.
    """
    from datasets import load_dataset

    name, _, configuration = identifier.partition(":")
    with _reached(identifier):
        splits: Mapping[str, Rows] = load_dataset(
            name, configuration or None, streaming=True, revision=revision, token=token
        )
    names = chosen_splits(identifier, split, splits)
    return chain.from_iterable(_stream(identifier, name, splits[name]) for name in names)


def chosen_splits(place: str, split: str, splits: Collection[str]) -> list[str]:
    """Return the names of a split among those of a dataset; ``all`` stands for each."""
    names = [name for name in (split, *_ALSO_CALLED.get(split, ())) if name in splits][:1]
    names = list(splits) if split == "all" else names
    if not names:
        raise InputError(f"{place}: {unknown_name('split', split, [*splits, 'all'])}")
    return names


def _stream(identifier: str, split: str, rows: Rows) -> Iterator[tuple[str, dict[str, Any]]]:
    with _reached(identifier):
        for index, row in enumerate(rows):
            yield f"{identifier} {split}: row {index}", row


@contextmanager
def _reached(identifier: str) -> Iterator[None]:
    """Turn errors of the Hub and of its library into an `InputError`."""
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except InputError:
        raise
    except (HfHubHTTPError, OSError, ValueError, RuntimeError) as error:
        remedy = "correct the id (org/name:config), log in with 'hf auth login', or try again later"
        if constants.HF_HUB_OFFLINE and isinstance(error, ConnectionError):
            remedy = (
                "HF_HUB_OFFLINE is set: unset it, or give a .parquet file that 'hf download' "
                "brought before"
            )
        raise InputError(
            f"{identifier}: is no file or folder here, and the dataset cannot be read from the Hub "
            f"({' '.join(str(error).split())}); {remedy}"
        ) from None
