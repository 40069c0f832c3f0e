"""Dialog2Flow: utterance embeddings grouped by dialogue action.

The paper is Burdisso et al., EMNLP 2024, arXiv:2410.18481. Utterances with the same action
(dialogue acts and slots) are positive pairs. The other utterances of the batch are negatives, the
less so the more similar the names of their actions are. A dialogue of one utterance without acts
and slots, as in intent corpora, takes its intents as its action (not in the paper).
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from ..dialogue import Dialogue, Turn, action_name
from ..errors import InputError
from ..ranges import ABOVE_ZERO, Range, Ranges
from .backbone_model import autocast_off
from .config import UtteranceConfig
from .layout import Truncation, tokenize_utterances
from .losses import gather_rows, hard_targets, soft_targets, target_contrastive
from .method import ABOUT, Examples, Method
from .utterance import UtteranceEncoder, UtteranceOutput, nested, positives_first

_WORDS = re.compile(r"[a-zA-Z0-9'?]+")

OBJECTIVES = {"single": ("actions",), "joint": ("acts", "slots")}
"""The label spaces of each target; every space has a contrastive head of its own."""


@strict
class Dialog2FlowConfig(UtteranceConfig):
    """Settings of Dialog2Flow, in addition to those of `UtteranceConfig`.

    Attributes:
        matryoshka_dims: Widths that embeddings can be cut to; the loss is a mean over all.
        target: ``"single"``: an utterance's acts and slots together are one label, its action;
            ``"joint"``: acts and slots are separate labels, with two heads whose losses are summed
            (section 3.2).
        contrast: ``"soft"``: targets weighted by the similarity of labels (equation 4); ``"hard"``:
            supervised contrastive learning (equation 1).
        loss_temperature: Divides the cosines between utterances.
        label_temperature: Divides the cosines between labels.
        label_encoder: A sentence-transformers model that embeds the labels; not used by ``"hard"``.
        label_balance: How evenly pairs are spread over labels: 0 in proportion to their utterances,
            1 equally (``extend`` in the released program).
        min_utterances: Labels with fewer distinct utterances are left out (the paper: 101).
        min_words: Utterances with fewer words are left out (the paper: 2).
        text_forms: ``"raw"``: texts as they are; ``"words"``: lower case, without punctuation, as
            in the released program; ``"both"``: one of the two, drawn for each utterance.
        across_domains: Draw a batch's anchors from few domains, and positives from others where the
            label allows it, so that topics cannot stand in for actions (not in the paper).
    """

    model_type = "dialemb-dialog2flow"
    ranges: ClassVar[Ranges] = {
        "loss_temperature": ABOVE_ZERO,
        "label_temperature": ABOVE_ZERO,
        "label_balance": Range(0, 1),
        "min_utterances": Range(2),
        "min_words": Range(1),
    }

    matryoshka_dims: list[int] | None = None
    target: Literal["single", "joint"] = "single"
    contrast: Literal["soft", "hard"] = "soft"
    loss_temperature: float = 0.05
    label_temperature: float = 0.35
    label_encoder: str = "sentence-transformers/multi-qa-mpnet-base-dot-v1"
    label_balance: float = 0.0
    min_utterances: int = 2
    min_words: int = 2
    text_forms: Literal["raw", "words", "both"] = "raw"
    across_domains: bool = False


class Dialog2FlowModel(UtteranceEncoder):
    """The encoder with one contrastive head per label space."""

    config: Dialog2FlowConfig

    def __init__(self, config: Dialog2FlowConfig) -> None:
        super().__init__(config, OBJECTIVES[config.target])

    def contrast(  # type: ignore[override]
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        drawn_labels: Tensor,
        carried_labels: Tensor,
        label_vectors: Tensor | None = None,
    ) -> UtteranceOutput:
        """Compute the loss of B pairs per label space, summed over the spaces (section 3.2).

        Args:
            input_ids: (B, 2 O, L) int64 for O label spaces: anchor and positive of the first, then
                of the second.
            attention_mask: 1 for real tokens, of the shape of ``input_ids``.
            drawn_labels: The label that each pair was drawn for, (B, O) int64.
            carried_labels: All labels of each utterance, (B, 2 O, K) int64, padded with -1.
            label_vectors: Unit vectors of the drawn labels, (B, O, E); None for hard targets.

        Returns:
            The loss, and the anchors' embeddings and the pairs' cosines of the first label space.
        """
        embeddings = self.embed(input_ids.flatten(0, 1), attention_mask.flatten(0, 1))
        embeddings = embeddings.unflatten(0, input_ids.shape[:2])  # (B, 2 O, D)
        spaces = OBJECTIVES[self.config.target]
        losses = []
        similarities = []
        with autocast_off(embeddings):
            for part in nested(embeddings, self.config.matryoshka_dims):
                for space, name in enumerate(spaces):
                    rows = slice(2 * space, 2 * space + 2)
                    pairs = torch.stack(
                        [self.project(side, name) for side in part[:, rows].unbind(1)], dim=1
                    )
                    vectors = None if label_vectors is None else label_vectors[:, space]
                    losses.append(
                        self._loss(pairs, carried_labels[:, rows], drawn_labels[:, space], vectors)
                    )
                    similarities.append((pairs[:, 0] @ pairs[:, 1].T).detach())
        loss = torch.stack(losses).mean() * len(spaces)
        ordered = positives_first(similarities[0])
        return UtteranceOutput(loss=loss, pooler_output=embeddings[:, 0], similarities=ordered)

    def _loss(
        self, pairs: Tensor, carried: Tensor, drawn: Tensor, label_vectors: Tensor | None
    ) -> Tensor:
        """Compute the loss of pairs (B, 2, P) by one label space's arguments of `contrast`."""
        candidates, labels = (gather_rows(tensor, self.training)[0] for tensor in (pairs, carried))
        label_similarities = None
        if label_vectors is not None:
            label_similarities = label_vectors @ gather_rows(label_vectors, self.training)[0].T
        losses = []
        for anchor_side, other_side in ((0, 1), (1, 0)):
            similarities = pairs[:, anchor_side] @ candidates[:, other_side].T  # (A, C)
            # A candidate drawn for another label is a positive too if it carries this label.
            shared = (labels[:, other_side] == drawn.view(-1, 1, 1)).any(-1)
            if label_similarities is None:
                targets = hard_targets(shared, similarities)
            else:
                targets = soft_targets(label_similarities, shared, self.config.label_temperature)
            losses.append(target_contrastive(similarities, targets, self.config.loss_temperature))
        return torch.stack(losses).mean()


class LabelPair(NamedTuple):
    """An anchor and a positive that carry a label.

    Attributes:
        texts: Anchor and positive.
        label: The number of the label in its space.
        carried: All labels of both, (2, K) int64, padded with -1; K is the most that an utterance
            of the space has.
        vector: The label's vector (E,), for soft targets.
    """

    texts: list[str]
    label: int
    carried: np.ndarray
    vector: np.ndarray | None = None


class LabelledUtterances:
    """The distinct utterances of dialogues, grouped by their labels in one label space.

    Utterances whose texts are equal, or become equal through ``text_forms``, count as one with all
    their labels. The space is ``"actions"`` (acts and slots together, in canonical order),
    ``"acts"`` or ``"slots"``; names are unified.

    Raises:
        InputError: No utterance carries a label, fewer than two labels have enough utterances, or
            ``across_domains`` is set and all utterances are of one domain.
    """

    def __init__(
        self, dialogues: Sequence[Dialogue], space: str, config: Dialog2FlowConfig, seed: int
    ) -> None:
        self.config = config
        self.seed = seed
        # by the text that is compared: the original text, its domain and its labels
        distinct: dict[str, tuple[str, str, dict[str, None]]] = {}
        labelled = 0
        too_short = 0
        form = str if config.text_forms == "raw" else utterance_words
        for dialogue in dialogues:
            domain = dialogue.domains[0] if dialogue.domains and config.across_domains else ""
            for turn in dialogue.turns:
                labels = _labels(turn, space, is_only_turn=len(dialogue.turns) == 1)
                words = (
                    turn.content.split()
                    if config.text_forms == "raw"
                    else _WORDS.findall(turn.content)
                )
                labelled += bool(labels)
                if labels and len(words) < config.min_words:
                    too_short += 1
                elif labels:
                    text = turn.content
                    *_, carried = distinct.setdefault(form(text), (text, domain, {}))
                    carried.update(dict.fromkeys(labels))
        if not labelled:
            raise InputError(
                "dialog2flow learns from dialogue acts and slots, or from the intents of single "
                f"utterances: none of {len(dialogues)} dialogues has {space}; name a corpus with "
                "such labels ('dialemb corpus list' shows them), or another target"
            )
        self.notes = []
        if too_short:
            self.notes.append(
                f"Left out {too_short:,} turns of fewer than {config.min_words} words ({space})"
            )
        self._group(list(distinct.values()), space)

    def _group(self, utterances: list[tuple[str, str, dict[str, None]]], space: str) -> None:
        """Group utterances (text, domain, labels) by the labels that have enough of them."""
        sizes = Counter(label for *_, labels in utterances for label in labels)
        least = self.config.min_utterances
        self.labels = sorted(label for label, size in sizes.items() if size >= least)
        if rare := len(sizes) - len(self.labels):
            self.notes.append(
                f"Left out {rare:,} of {len(sizes):,} {space}: fewer than {least} utterances each"
            )
        if len(self.labels) < 2:
            raise InputError(
                f"dialog2flow: got {len(self.labels)} {space} of at least {least} different "
                "utterances "
                "(min_utterances), expected two or more; add dialogues or lower min_utterances"
            )
        numbers = {label: number for number, label in enumerate(self.labels)}
        carried = [
            [numbers[label] for label in labels if label in numbers] for *_, labels in utterances
        ]
        kept = [row for row, labels in enumerate(carried) if labels]
        self.texts = [utterances[row][0] for row in kept]
        domains = [utterances[row][1] for row in kept]
        domain_numbers = np.unique(domains, return_inverse=True)[1]
        if self.config.across_domains and not domain_numbers.any():
            raise InputError(
                f"across_domains: got utterances of one domain ({domains[0] or 'none named'}), "
                "expected two or more; give dialogues 'domains', or leave across_domains out"
            )
        self.carried = np.full((len(kept), max(map(len, carried))), -1)
        for position, row in enumerate(kept):
            self.carried[position, : len(carried[row])] = carried[row]
        rows, columns = np.nonzero(self.carried >= 0)
        labels = self.carried[rows, columns]
        counts = np.bincount(labels)
        # A label's utterances are sorted by domain, so that those of a domain are a slice.
        order = np.lexsort((rows, domain_numbers[rows], labels))
        self.members = np.split(rows[order], np.cumsum(counts)[:-1])
        self.domains = [domain_numbers[part] for part in self.members]
        # Pairs are numbered label by label; these are the numbers at which the labels end.
        weights = counts ** (1 - self.config.label_balance)
        self.ends = np.cumsum(
            np.maximum(1, np.round(counts.sum() * weights / weights.sum()))
        ).astype(np.int64)

    def __len__(self) -> int:
        return int(self.ends[-1])

    def _anchor_slice(self, index: int) -> tuple[int, int, int]:
        """Return the label of a pair, and the slice of its utterances in the anchor's domain."""
        label = int(np.searchsorted(self.ends, index, side="right"))
        domains = self.domains[label]
        begin = int(self.ends[label - 1]) if label else 0
        domain = domains[(index - begin) * len(domains) // (int(self.ends[label]) - begin)]
        first, end = np.searchsorted(domains, [domain, domain + 1])
        return label, int(first), int(end)

    def domain(self, index: int) -> int:
        """Return the number of the domain of a pair's anchor, the same in every epoch."""
        label, first, _ = self._anchor_slice(index)
        return int(self.domains[label][first])

    def pair(self, epoch: int, index: int) -> LabelPair:
        """Draw two utterances with the same label, a pure function of (seed, epoch, index).

        Within an epoch, the anchors of a label cycle through its utterances, and the positive is
        any other of them. With ``across_domains``, they cycle through those of a domain; the
        positive is of another domain if possible.
        """
        label, first, end = self._anchor_slice(index)
        members = self.members[label]
        offset = int(np.random.default_rng([self.seed, epoch, label, 0]).integers(len(members)))
        generator = np.random.default_rng([self.seed, epoch, index, 1])
        anchor = first + (index + offset) % (end - first)
        if end - first < len(members):
            positive = (end + int(generator.integers(len(members) - end + first))) % len(members)
        else:
            positive = (anchor + 1 + int(generator.integers(len(members) - 1))) % len(members)
        rows = members[[anchor, positive]]
        texts = []
        form = self.config.text_forms
        for row in rows:
            as_words = form == "words" or (form == "both" and generator.random() < 0.5)
            texts.append(utterance_words(self.texts[row]) if as_words else self.texts[row])
        return LabelPair(texts, label, self.carried[rows])


def utterance_words(text: str) -> str:
    """Return the ASCII words of an utterance in lower case.

    Of punctuation, only ``'`` and ``?`` stay.
    """
    return " ".join(_WORDS.findall(text.lower()))


def _labels(turn: Turn, space: str, is_only_turn: bool) -> list[str]:
    slots = [name for name, _ in turn.slots]
    if space == "actions":
        action = action_name(turn.dialogue_acts, slots)
        return (
            [action] if action else [f"intent {intent}" for intent in turn.intents if is_only_turn]
        )
    return list(dict.fromkeys(filter(None, turn.dialogue_acts if space == "acts" else slots)))


class Dialog2FlowExamples(Examples):
    """Pairs of utterances that share a label, a pair per label space (section 3 and appendix B)."""

    def __init__(self, dialogues: Sequence[Dialogue], config: Dialog2FlowConfig, seed: int) -> None:
        spaces = [
            LabelledUtterances(dialogues, space, config, seed + number)
            for number, space in enumerate(OBJECTIVES[config.target])
        ]
        super().__init__(spaces, [note for space in spaces for note in space.notes])
        # A label's meaning does not depend on its space: "confirm" the act and "confirm" the slot
        # share a vector.
        names = sorted({label for space in spaces for label in space.labels})
        self.label_texts = names if config.contrast == "soft" else []
        self.label_rows = {name: row for row, name in enumerate(names)}
        self.label_vectors = np.zeros((len(names), 0), dtype=np.float32)

    def __len__(self) -> int:
        return min(map(len, self.items))

    def length(self, index: int) -> int:
        """Return the domain of the first space's anchor, so that a batch holds few domains."""
        first: LabelledUtterances = self.items[0]
        return first.domain(index * len(first) // len(self))

    def example(self, epoch: int, index: int) -> list[LabelPair]:
        """Draw a pair of each label space, with the vector of its label for soft targets."""
        pairs = []
        for space in self.items:
            # A space with more pairs is traversed in larger steps, so that every epoch reaches all
            # of its labels.
            pair = space.pair(epoch, index * len(space) // len(self))
            vector = (
                self.label_vectors[self.label_rows[space.labels[pair.label]]]
                if self.label_texts
                else None
            )
            pairs.append(pair._replace(vector=vector))
        return pairs


def collate(
    examples: list[list[LabelPair]],
    tokenizer: PreTrainedTokenizerBase,
    config: Dialog2FlowConfig,
    count: Truncation,
) -> dict[str, Tensor]:
    """Turn B examples into the arguments of `Dialog2FlowModel.contrast`; count truncation."""
    texts = [text for example in examples for pair in example for text in pair.texts]
    batch = tokenize_utterances(texts, tokenizer, config.max_tokens, count, config.prompt)
    batch = {name: tensor.unflatten(0, (len(examples), -1)) for name, tensor in batch.items()}
    batch["drawn_labels"] = torch.tensor([[pair.label for pair in example] for example in examples])
    # Padded to the widest example of all data, not of the batch: processes gather tensors of the
    # same shape.
    width = max(pair.carried.shape[1] for pair in examples[0])
    carried = np.full((len(examples), len(examples[0]), 2, width), -1)
    for row, example in enumerate(examples):
        for space, pair in enumerate(example):
            carried[row, space, :, : pair.carried.shape[1]] = pair.carried
    batch["carried_labels"] = torch.from_numpy(carried).flatten(1, 2)
    if config.contrast == "soft":
        vectors = np.array([[pair.vector for pair in example] for example in examples])
        batch["label_vectors"] = nn.functional.normalize(torch.from_numpy(vectors), dim=-1)
    return batch


METHOD = Method(
    "dialog2flow",
    Dialog2FlowConfig,
    Dialog2FlowModel,
    Dialog2FlowExamples,
    collate,
    labelled=True,
    in_batch_negatives=True,
    **ABOUT["dialog2flow"],
)
