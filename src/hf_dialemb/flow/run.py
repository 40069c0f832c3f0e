"""From a folder of conversations to a page: what ``dialemb flow`` does, each step kept on disk and not done twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..corpora import load_dialogues
from ..dialogue import Dialogue
from ..encoders import load_encoder
from ..encoders.stored_vectors import stored_vectors
from ..errors import InputError
from ..hashing import sha256
from ..metrics.vectors import unit_vectors
from ..runs.files import check_writable
from .extract import source_of
from .flow import read_utterances
from .pipeline import CACHE, FlowSettings, find_flow, utterance_vectors
from .report import PAGE, write_report
from .stored_flow import UTTERANCES

_ENOUGH = 20  # fewer dialogues are no set of several topics
_ALIKE = 0.48
"""The least mean cosine of dialogues about one thing. Each of 54 domains of STAR, SGD and MultiWOZ (training and
development splits) has 0.497 and more; all domains together have 0.31 (STAR), 0.23 (SGD) and 0.39 (MultiWOZ; its
development split alone 0.53)."""


@dataclass(frozen=True)
class Selection:
    """Which dialogues to read; see `hf_dialemb.corpora.iterate_dialogues`."""

    corpus: str  # a folder, file, corpus name or Hub dataset
    data_dir: str | None = None  # where a registered corpus lies
    split: str = "all"
    domain: str | None = None  # that of dialogues which have no other
    columns: str | None = None  # how a table of one's own is read
    roles: str | None = None  # who is who in files of one's own

    @property
    def name(self) -> str:
        """The last part of the corpus's path."""
        return Path(self.corpus.rstrip("/")).name or self.corpus

    @cached_property
    def dialogues(self) -> list[Dialogue]:
        """The dialogues, at least one; an `InputError` says what is malformed, or that none has the domain."""
        found = load_dialogues(self.corpus, self.data_dir, self.split, columns=self.columns, roles=self.roles)
        if self.domain is None:
            return found
        kept = [dialogue for dialogue in found if dialogue.domains == (self.domain,)]
        if not kept:
            counts = Counter(dialogue.domains[0] for dialogue in found if len(dialogue.domains) == 1)
            known = ", ".join(f"{name} ({count:,})" for name, count in counts.most_common())
            raise InputError(
                f"--domain: got '{self.domain}', expected one that dialogues have for themselves: "
                f"{known or 'none, they have no domains'}"
            )
        return kept


def build_flow(
    selection: Selection,
    output: Path,
    settings: FlowSettings,
    say: Callable[[str], object],
    model: str,
    vectors: Path | None = None,
) -> None:
    """Finds the flow of conversations, writes its page, files and tables, and says in lines what is done.

    A run that was stopped, or one with other settings, goes on from the steps that it shares with what is there:
    vectors are kept by text, clusters by vectors and settings, names by clusters. Utterances are embedded by the model,
    or have ready vectors: what ``dialemb embed`` wrote of them, or a ``.npy``, ``(N, D)``, in order.
    """
    source = source_of(model) if vectors is None else _digest(vectors)
    dialogues = selection.dialogues
    said = read_utterances(dialogues)
    ready = None
    if vectors is not None and vectors.suffix == ".parquet":
        stored = stored_vectors(vectors, rows="utterances")
        model, ready = stored.model, stored.of_utterances(dialogues)
    elif vectors is not None:
        model, ready = "", _read_vectors(vectors, len(said))
    for name in (PAGE, UTTERANCES):
        check_writable(output / name, selection.corpus)
    say(f"{len(said.dialogues):,} dialogues with {len(said):,} utterances")

    def of_utterances() -> NDArray[np.float32]:
        return encoded(model, said.texts, output / CACHE) if ready is None else ready

    facts = {
        "model": model,
        "vectors": source,
        "corpus": f"{selection.name}, {selection.domain}" if selection.domain else selection.name,
        "split": selection.split,
    }
    stored_flow, clusterings, pruning = find_flow(said, of_utterances, settings, facts, output)
    for role, clustering in clusterings.items():
        say(f"{role}: {clustering.choice.sentence}")
    *lines, wrote = write_report(stored_flow, clusterings, pruning, output)
    for line in [*lines, *_mixed(dialogues), wrote]:
        say(line)


def _mixed(dialogues: list[Dialogue]) -> Iterator[str]:
    """Says that dialogues are about several things, if they are: by their domains, or else by what is said."""
    several = "This is one flow of dialogues about several things; --by topic makes a flow of each topic"
    if domains := sorted({name for dialogue in dialogues for name in dialogue.domains}):
        if len(domains) > 1:
            yield f"{several}, --domain NAME of one domain: {', '.join(domains)}"
        return
    if about_several_things(dialogues):
        yield several


def about_several_things(dialogues: list[Dialogue]) -> bool:
    """Says whether dialogues are about several things, by what is said."""
    if len(dialogues) < _ENOUGH:
        return False
    some = random.Random(0).sample(dialogues, min(len(dialogues), 1_000))
    mean = unit_vectors(load_encoder("dialogue-static").encode(some)).mean(axis=0)
    return bool(mean @ mean < _ALIKE)


def encoded(model: str, texts: tuple[str, ...], cache: Path) -> NDArray[np.float32]:
    """Embeds utterances by a model that is named; vectors are kept in the cache by text."""
    return utterance_vectors(load_encoder(model), texts, cache)


def _digest(path: Path) -> str:
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "no such file"
        raise InputError(f"--vectors {path}: got {kind}, expected a file of vectors; write one by dialemb embed")
    return sha256(path)


def _read_vectors(path: Path, count: int) -> NDArray[np.float32]:
    """Reads ready vectors, ``(count, D)``."""
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
