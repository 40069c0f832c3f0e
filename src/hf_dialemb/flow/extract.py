"""The flow of dialogues in memory, from Python: what ``dialemb flow`` does and writes, by any encoder."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..corpora import load_dialogues
from ..encoders import load_encoder
from ..encoders.specs import find_encoder, fingerprint
from ..runs.frames import counted, data_frame, notebook_view
from .clustering import Clustering
from .drawing import draw_graph
from .flow import Flow, read_utterances
from .graph import END, START
from .pipeline import CACHE, FlowSettings, find_flow, utterance_vectors
from .pruning import Pruning, pruned
from .report import PAGE, write_main_page, write_report
from .stored_flow import StoredFlow

if TYPE_CHECKING:
    import networkx

_ROWS = 20  # so many states a notebook shows


@dataclass(frozen=True, eq=False, repr=False)
class ExtractedFlow:
    """A flow, and how it was found."""

    stored: StoredFlow  # the flow with the centroids of its clusters
    clusterings: Mapping[str, Clustering]  # how the clusters of each role were found
    pruning: Pruning  # what of the flow is too rare to be shown

    @property
    def flow(self) -> Flow:
        """The dialogues as paths through clusters."""
        return self.stored.flow

    @cached_property
    def graph(self) -> networkx.DiGraph[str]:
        """All states and transitions.

        Nodes are ids of states, ``[start]`` and ``[end]`` among them, with ``role``, ``name``, ``count`` and ``shown``:
        whether pages and pictures show it at first. Edges have ``count``, ``probability``, of all from the same state,
        and ``shown``.
        """
        import networkx

        flow, shown, drawn = self.flow, pruned(self.flow.graph, self.pruning), networkx.DiGraph()
        for state in (START, END):
            drawn.add_node(state[1], role="", name=state[1].strip("[]"), count=len(flow.trajectories), shown=True)
        for one in flow.clusters:
            drawn.add_node(one.id, role=one.role, name=one.name, count=one.size, shown=one.state in shown.nodes)
        shares = flow.graph.shares
        for edge, count in flow.graph.edges.items():
            drawn.add_edge(edge[0][1], edge[1][1], count=count, probability=shares[edge], shown=edge in shown.edges)
        return drawn

    @property
    def states(self) -> Any:  # noqa: ANN401 - a pandas.DataFrame
        """A row for each state: id, role, name, size, and the tuple of its examples; an InputError without pandas."""
        columns = ("id", "role", "name", "size", "examples")
        return data_frame([{name: getattr(one, name) for name in columns} for one in self.flow.clusters])

    def page(self, path: str | Path) -> None:
        """Writes the page to look at: one HTML file, whole or not at all."""
        write_main_page(self.flow, self.clusterings, self.pruning, Path(path))

    def save(self, folder: str | Path) -> None:
        """Writes all files that ``dialemb flow`` writes; its other commands go on from the folder."""
        write_report(self.stored, self.clusterings, self.pruning, Path(folder))

    def __repr__(self) -> str:
        said = self.flow.utterances
        counts = ((len(said.dialogues), "dialogue"), (len(said), "utterance"), (len(self.flow.clusters), "state"))
        return f"{self.flow.title}: {', '.join(counted(*each) for each in counts)}"

    def _repr_html_(self) -> str:
        found = sorted(self.flow.clusters, key=lambda one: -one.size)
        rows = ((one.id, one.name, f"{one.size:,}") for one in found[:_ROWS])
        rest = f", the {_ROWS} most frequent of which are below" if len(found) > _ROWS else ""
        with TemporaryDirectory() as folder:
            pictures, _ = draw_graph(self.flow, pruned(self.flow.graph, self.pruning), Path(folder))
            drawn = [base64.b64encode(path.read_bytes()).decode() for path in pictures if path.suffix == ".png"]
        picture = "".join(
            f'<img alt="the flow" style="max-width: 100%" src="data:image/png;base64,{one}">' for one in drawn
        )
        return notebook_view(f"{self!r}{rest}", picture, ("state", "name", "utterances"), rows)


def extract_flow(
    dialogues: Any,  # noqa: ANN401 - see load_dialogues
    encoder: Any,  # noqa: ANN401 - see load_encoder
    *,
    output: str | Path | None = None,
    title: str = "Dialogue flow",
    model: str = "",
    overview: str | Path | None = None,
    **settings: Any,  # noqa: ANN401 - fields of `FlowSettings`
) -> ExtractedFlow:
    """Finds the workflow that dialogues follow (Dialog2Flow), as ``dialemb flow`` does.

    Examples:
        >>> flow = hf_dialemb.extract_flow(dialogues, encoder="all-MiniLM-L6-v2")
        >>> flow.page("flow.html")

    ``dialogues`` come in the forms of `hf_dialemb.corpora.load_dialogues`, ids that are there all different; the
    encoder is what `hf_dialemb.encoders.loading.load_encoder` takes. ``output`` is a folder to write everything to;
    steps that it has of another run are not done again. ``model`` is the spec by which the command line finds the
    encoder, so that ``dialemb flow next`` and ``compare`` can go on from the saved flow with new utterances, and
    vectors are kept in ``output``. ``overview`` is the folder of a page of topics: that of a flow links back to it, and
    the vectors of all flows are kept there. ``settings`` are ``clusters``, ``threshold``, ``names``, ``nodes``,
    ``edges``, ``weights`` and ``seed``; see `hf_dialemb.flow.pipeline.FlowSettings`. An InputError says that there is
    no dialogue, a setting is wrong, or the encoder gives no vectors.
    """
    wanted, encoder = FlowSettings(**settings), load_encoder(encoder)
    said, model = read_utterances(load_dialogues(dialogues)), model or encoder.spec
    folder = Path(output) if output is not None else None
    vectors: Callable[[], NDArray[np.float32]]
    if model:
        source, kept = source_of(model), Path(overview or folder) / CACHE if folder else None
        vectors = partial(utterance_vectors, encoder, said.texts, kept)
    else:
        made = np.ascontiguousarray(utterance_vectors(encoder, said.texts))
        source, vectors = hashlib.sha256(made.tobytes()).hexdigest(), lambda: made
    facts = {"model": model, "vectors": source, "corpus": title}
    extracted = ExtractedFlow(*find_flow(said, vectors, wanted, facts, folder))
    if folder:
        back = Path(os.path.relpath(Path(overview) / PAGE, folder)).as_posix() if overview else ""
        write_report(extracted.stored, extracted.clusterings, extracted.pruning, folder, back)
    return extracted


def source_of(model: str) -> str:
    """Tells the vectors of a model (see `hf_dialemb.encoders.specs.load_encoder`) from all others."""
    return fingerprint(model) + (" whitened" if find_encoder(model).whitened else "")
