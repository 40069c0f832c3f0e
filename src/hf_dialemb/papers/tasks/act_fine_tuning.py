"""Rankers that learn a task themselves: encoders of contexts under a linear layer (Mehri and Eskenazi, section 5.3).

What is to be told is as for the probes, but here the encoders learn too: each member of an ensemble, their vectors laid
end to end. The optimiser's settings are those with which the paper trains its rankers, as it names none for this. For
comparison encoders may start from random weights, with a ranker's architecture and words: so does the first row of the
paper's Table 6, and the row "Fine-tuned" of Table 5, which has the same figure.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ...dialogue import ROLES, Dialogue
from ...methods.layout import Truncation
from ...methods.ranker import context_ids
from ...methods.ranking import LoadedRanker
from .context_labels import PARTS, Contexts
from .linear_layer import LayerSettings, Outcome
from .probes import Rankers, System, measure_rankers

SETTINGS = LayerSettings(learning_rate=0.005, batch_size=32, epochs=20, patience=5)  # of section 4.2.1; patience: ours


class ContextTokens:
    """Contexts as token ids, (N, L) and padded on the right; each member of an ensemble has its own."""

    def __init__(self, ids: torch.Tensor, mask: torch.Tensor) -> None:
        self.ids = ids.int()  # half the memory
        self.lengths = mask.sum(-1)

    def batch(self, rows: torch.Tensor, device: torch.device) -> dict[str, torch.Tensor]:
        """Return ``input_ids`` and ``attention_mask`` of some contexts, each (B, L) for the longest of them."""
        lengths = self.lengths[rows]
        longest = max(1, int(lengths.max()))
        mask = (torch.arange(longest) < lengths[:, None]).long()
        return {"input_ids": self.ids[rows, :longest].long().to(device), "attention_mask": mask.to(device)}


class LearningEncoders:
    """Copies of rankers that learn; see `hf_dialemb.papers.tasks.linear_layer.VectorSource`.

    They read ``tokens``, of each member by part, and start from its weights, or from random ones that the seed decides.
    With ``bfloat16`` they compute in that; their weights and the layer are float32 all the same.
    """

    def __init__(
        self,
        members: Sequence[LoadedRanker],
        tokens: Sequence[Mapping[str, ContextTokens]],
        seed: int,
        trained: bool = True,
        bfloat16: bool = False,
    ) -> None:
        self.device = members[0].model.device
        self.width = sum(member.model.config.hidden_size for member in members)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            models = [
                copy.deepcopy(member.model) if trained else type(member.model)(copy.deepcopy(member.model.config))
                for member in members
            ]
        self.layers = torch.nn.ModuleList(models).to(self.device)
        self._tokens = tokens
        self._bfloat16 = bfloat16

    def lengths(self, part: str) -> NDArray[np.intp]:
        """Return how many tokens the contexts have, (N,)."""
        lengths: NDArray[np.intp] = self._tokens[0][part].lengths.numpy()
        return lengths

    def vectors(self, part: str, rows: NDArray[np.intp]) -> torch.Tensor:
        """Embed some contexts, with gradient where that is on, (B, W)."""
        chosen = torch.from_numpy(rows)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._bfloat16):
            results = [
                model(**tokens[part].batch(chosen, self.device)).pooler_output
                for model, tokens in zip(self.layers, self._tokens, strict=True)
            ]
        return torch.cat(results, dim=-1).float()


def run_act_fine_tuning(
    rankers: Rankers,
    parts: Mapping[str, Sequence[Dialogue]],
    target: str,
    seeds: Sequence[int],
    untrained: str | None = None,
    settings: LayerSettings = SETTINGS,
    bfloat16: bool = False,
    finished: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Measure how well rankers learn what is to be told; the one that is named starts from random weights."""

    def system_of(members: Sequence[LoadedRanker], contexts: Mapping[str, Contexts], name: str) -> System:
        trained = name != untrained
        tokens = [{part: lay_out(member, contexts[part]) for part in PARTS} for member in members]
        config = {"trained": trained, "precision": "bfloat16" if bfloat16 else "float32"}
        return System(lambda seed: LearningEncoders(members, tokens, seed, trained, bfloat16), config)

    return measure_rankers("fine-tuning", rankers, parts, target, seeds, settings, system_of, finished)


def lay_out(member: LoadedRanker, contexts: Contexts) -> ContextTokens:
    """Lay out contexts as a ranker reads them."""
    config = member.model.config
    speakers = (config.marker_ids or [])[: len(ROLES)]
    batch = context_ids(contexts.turns, member.tokenizer, speakers, config.max_context_tokens, Truncation())
    return ContextTokens(batch["input_ids"], batch["attention_mask"])
