"""Extract the flow of dialogues, for Python and ``dialemb flow`` alike."""

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data import load_dialogues
from ...dialogue import Dialogue
from ...display import visible
from ...encoders import Encoder, load_encoder
from ...encoders.embedding_cache import RememberingEncoder
from ...errors import InputError
from ...metrics.vectors import unit_vectors
from ...storage.pretrained import default_encoder
from ..pages.page import write_page
from .flow import Flow, Utterances, read_utterances
from .flow_clustering import cluster_by_role
from .flow_folder import CACHE, PAGE, write_report
from .graph import Pruning, readable
from .outcomes import is_english, outcomes_apart
from .paths import UNREAD, ends, typical_path
from .step_names import named, shortened

_ENOUGH = 20  # fewer dialogues are no set of several topics
_ALIKE = 0.48
"""The least mean cosine of dialogues about one thing.

Each of 54 domains of STAR, SGD and MultiWOZ (training and development splits) has 0.497 and more;
all domains together have 0.31 (STAR), 0.23 (SGD) and 0.39 (MultiWOZ; its development split alone
0.53).
"""


@dataclass(frozen=True, eq=False, repr=False)
class ExtractedFlow:
    """A flow, and the part of it that is shown."""

    flow: Flow
    choices: Mapping[str, str]  # how the number of clusters of each role was decided
    pruning: Pruning

    def page(self, path: str | Path) -> None:
        """Write the page: one HTML file, whole or not at all."""
        write_page(self.flow, Path(path), self.pruning, choices=self.choices)

    def lines(self) -> Iterator[str]:
        """Describe the flow in lines.

        Its size, how clusters were chosen, and the main path.
        """
        flow = self.flow
        yield flow.counts
        yield from (f"{role}: {sentence}" for role, sentence in self.choices.items())
        yield from unread_ends([end.kind for end in ends(flow) for _ in end.dialogues])
        main = typical_path(flow)
        yield f"Main path, as in {short(main.dialogue)}:"
        for state, text in zip(main.states, main.texts, strict=True):
            yield f"  {state[0]}: {short(text)}"

    def __repr__(self) -> str:
        return f"{self.flow.title}: {self.flow.counts}"


def extract_flow(
    dialogues: Any,
    encoder: Any = None,
    *,
    vectors: NDArray[Any] | None = None,
    output: str | Path | None = None,
    title: str = "Dialogue flow",
    overview: str | Path | None = None,
    clusters: int | Mapping[str, int] | None = None,
    nodes: float | None = None,
    edges: float | None = None,
    seed: int = 0,
    language: str = "",
    **reading: Any,
) -> ExtractedFlow:
    """Find the workflow that dialogues follow (Dialog2Flow).

    Examples:
        >>> flow = hf_dialemb.extract_flow(dialogues, encoder="all-MiniLM-L6-v2")
        >>> flow.page("flow.html")

    Args:
        dialogues: What `load_dialogues` takes, with different ids or none.
        encoder: What `load_encoder` takes; by default the best that is at hand. With a spec or a
            loaded spec, ``dialemb flow next`` and ``compare`` can go on from the saved flow, and
            vectors are kept in ``output``.
        vectors: The vectors of all utterances in order, ``(N, D)``; then no encoder is loaded.
        output: A folder to write everything to.
        title: The title of the page.
        overview: The folder of a page of topics: the page links back to it, and vectors are kept
            there.
        clusters: The number of states of each role, or of the roles that a mapping names; by
            default it is found.
        nodes: See `hf_dialemb.apps.flow.graph.Pruning`, as for ``edges``; by default they are
            chosen so that a person can read what is shown.
        edges: See ``nodes``.
        seed: The seed of random draws.
        language: The language of all dialogues, such as ``de``: outcomes and ends are read in
            English alone. By default each conversation tells its own.
        **reading: How files are read, as in `load_dialogues`.

    Raises:
        InputError: There is no dialogue, a setting is wrong, or vectors do not fit.
    """
    Pruning(nodes or 0.0, edges or 0.0)  # refuses what is out of range
    utterances = read_utterances(load_dialogues(dialogues, **reading))
    folder = Path(output) if output is not None else None
    cache = Path(overview or folder) / CACHE if folder else None
    rows, made_by = _embedded(utterances, encoder, vectors, cache)
    clusterings = cluster_by_role(rows, utterances.roles, clusters=clusters, seed=seed)
    if is_english(utterances.texts, language):
        clusterings = outcomes_apart(clusterings, utterances, rows)
    labels = {role: clustering.labels for role, clustering in clusterings.items()}
    choices = {role: clustering.sentence for role, clustering in clusterings.items()}
    flow = named(title, utterances, rows, labels, {**made_by, "seed": seed, "language": language})
    pruning = readable(flow.graph, nodes, edges)
    if folder:
        back = Path(os.path.relpath(Path(overview) / PAGE, folder)).as_posix() if overview else ""
        write_report(flow, choices, pruning, folder, back)
    return ExtractedFlow(flow, choices, pruning)


def _embedded(
    utterances: Utterances, encoder: Any, vectors: NDArray[Any] | None, cache: Path | None
) -> tuple[NDArray[np.float32], dict[str, str]]:
    """Return the vectors of N utterances, ``(N, D)``, and what a flow keeps of their encoder."""
    if vectors is not None:
        return checked_vectors(vectors, len(utterances), "utterance"), encoder_facts(None)
    loaded = load_encoder(encoder or default_encoder("action"))
    return utterance_vectors(loaded, utterances.texts, cache), encoder_facts(loaded)


def encoder_facts(encoder: Encoder | None) -> dict[str, str]:
    """Return the spec of an encoder and the digest of its vectors, or empty texts."""
    if encoder is None or not encoder.spec:
        return {"model": "", "vectors": ""}
    return {"model": encoder.spec, "vectors": encoder.fingerprint}


def utterance_vectors(
    encoder: Encoder, texts: Sequence[str], cache: Path | None = None
) -> NDArray[np.float32]:
    """Embed N texts, equal ones once, ``(N, D)``; the folder ``cache`` keeps their vectors."""
    distinct = {text: row for row, text in enumerate(sorted(set(texts)))}
    remembering = RememberingEncoder(encoder, cache)
    return remembering.encode_utterances(list(distinct))[[distinct[text] for text in texts]]


def checked_vectors(vectors: Any, count: int, of: str) -> NDArray[np.float32]:
    """Return vectors of ``count`` things, ``(N, D)``.

    An InputError reports others, and numbers that are not finite.
    """
    given = np.asarray(vectors)
    if given.ndim != 2 or len(given) != count or given.dtype.kind != "f":
        raise InputError(
            f"vectors: got {given.dtype} of shape {given.shape}, expected floats of shape "
            f"({count}, D), a row for each {of} in order; write them again"
        )
    rows: NDArray[np.float32] = given.astype(np.float32)
    if not np.isfinite(rows).all():
        raise InputError("vectors: got NaN or infinity, expected finite numbers; write them again")
    return rows


def unread_ends(kinds: Sequence[str]) -> Iterator[str]:
    """Say how many of the dialogues that end in these ways are in no language that is read."""
    if unread := kinds.count(UNREAD):
        yield (
            f"How conversations end is read in English alone: {unread:,} of {len(kinds):,} are in "
            "another language; to read all the same: --language en"
        )


def about_several_things(dialogues: Sequence[Dialogue]) -> bool:
    """Return whether dialogues are about several things, by their words."""
    if len(dialogues) < _ENOUGH:
        return False
    sample = random.Random(0).sample(dialogues, min(len(dialogues), 1_000))
    mean = unit_vectors(load_encoder("dialogue-static").encode(sample)).mean(axis=0)
    return bool(mean @ mean < _ALIKE)


def short(name: str, most: int = 90) -> str:
    """Cut a name for a line of a terminal, without characters that would control it."""
    return shortened(visible(" ".join(name.split())), most)
