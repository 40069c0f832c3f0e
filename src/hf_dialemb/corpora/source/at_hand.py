"""Which corpora lie in the data folder."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from .. import iterate_examples
from ..corpus import SPLITS
from ..registry import CORPORA, get_corpus
from .files import MissingFilesError


def sets_at_hand(
    data_dir: str | Path | None = None,
    splits: Sequence[str] = SPLITS,
    *,
    names: Iterable[str] | None = None,
    skip_invalid: bool = False,
) -> Iterator[str]:
    """Finds the sets that can be read, such as ``"sgd/test"``, sorted by corpus."""
    for name in sorted(CORPORA if names is None else names):
        corpus = get_corpus(name)
        if names is None and not corpus.patterns:
            continue
        for split in corpus.splits:
            if split in splits:
                with suppress(MissingFilesError):
                    next(iterate_examples(name, data_dir, split, skip_invalid=skip_invalid))
                    yield f"{name}/{split}"
