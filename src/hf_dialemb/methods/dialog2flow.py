"""Dialog2Flow: utterance embeddings grouped by what utterances do (Burdisso et al., EMNLP 2024, arXiv:2410.18481).

Utterances with the same action (dialogue acts and slots) are positive pairs. How much the other utterances of the batch
are negatives depends on the likeness of the actions' names. A single utterance without acts and slots, as in corpora of
intents, has its intents as its action (not in the paper).
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
from .utterance import UtteranceEncoder, UtteranceOutput, positives_first

_WORDS = re.compile(r"[a-zA-Z0-9'?]+")

OBJECTIVES = {"single": ("actions",), "joint": ("acts", "slots")}
"""The label spaces of a target; each has a contrastive head of its own."""


@strict
class Dialog2FlowConfig(UtteranceConfig):
    """Settings of Dialog2Flow, beside those of `UtteranceConfig`.

    Attributes:
        target: ``"single"``: the action, acts and slots together; ``"joint"``: acts and slots apart, with two heads
            whose losses are summed (section 3.2).
        contrast: ``"soft"``: targets by the likeness of labels (equation 4); ``"hard"``: supervised contrastive
            learning (equation 1).
        loss_temperature: Divides the cosines of utterances (0.05).
        label_temperature: Divides the cosines of labels (0.35).
        label_encoder: A sentence-transformers model that embeds the labels; not used by ``"hard"``.
        label_balance: From 0, pairs of a label in proportion to its utterances, to 1, as many for every label (the
            program's ``extend``).
        min_utterances: Labels of fewer distinct utterances are left out (the paper: 101).
        min_words: Shorter utterances are left out (the paper: 2).
        text_forms: ``"raw"``; ``"words"``: lower case, without punctuation, as in the released program; ``"both"``:
            either, drawn per utterance, so that transcripts of both kinds serve.
        across_domains: Draw a batch's anchors from few domains, and positives from other domains where the label
            allows, so that the topic does not help (not in the paper).
    """

    model_type = "dialemb-dialog2flow"
    ranges: ClassVar[Ranges] = {
        "loss_temperature": ABOVE_ZERO, "label_temperature": ABOVE_ZERO, "label_balance": Range(0, 1),
        "min_utterances": Range(2), "min_words": Range(1),
    }  # fmt: skip

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
    _keys_to_ignore_on_load_unexpected = ["batches"]  # noqa: RUF012 - in checkpoints of earlier versions

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
        """Contrast the pairs of each label space (section 3.2).

        Args:
            input_ids: (B, 2 O, L) int64 for O label spaces: anchor and positive of the first, then of the second.
            attention_mask: (B, 2 O, L) int64.
            drawn_labels: The label that each pair was drawn for, (B, O) int64.
            carried_labels: All labels of each utterance, (B, 2 O, K) int64, filled with -1.
            label_vectors: Unit vectors of the drawn labels, (B, O, E); None for hard targets.
        """
        embeddings = self.embed(input_ids.flatten(0, 1), attention_mask.flatten(0, 1))
        embeddings = embeddings.unflatten(0, input_ids.shape[:2])  # (B, 2 O, D)
        losses, similarities = [], []
        with autocast_off(embeddings):
            for space, name in enumerate(OBJECTIVES[self.config.target]):
                rows = slice(2 * space, 2 * space + 2)
                pairs = torch.stack([self.project(side, name) for side in embeddings[:, rows].unbind(1)], dim=1)
                names = None if label_vectors is None else label_vectors[:, space]
                losses.append(self._loss(pairs, carried_labels[:, rows], drawn_labels[:, space], names))
                similarities.append((pairs[:, 0] @ pairs[:, 1].T).detach())
        first = positives_first(similarities[0])
        return UtteranceOutput(loss=torch.stack(losses).sum(), pooler_output=embeddings[:, 0], similarities=first)

    def _loss(self, pairs: Tensor, carried: Tensor, drawn: Tensor, label_vectors: Tensor | None) -> Tensor:
        """Compute the loss of pairs (B, 2, P) in one label space; the other arguments are its part of `contrast`'s."""
        everyone, labels = (gather_rows(tensor, self.training)[0] for tensor in (pairs, carried))
        likeness = None
        if label_vectors is not None:
            likeness = label_vectors @ gather_rows(label_vectors, self.training)[0].T
        losses = []
        for anchor, candidate in ((0, 1), (1, 0)):
            similarities = pairs[:, anchor] @ everyone[:, candidate].T  # (A, C)
            # A candidate drawn for another label is a positive too if it carries this label.
            shared = (labels[:, candidate] == drawn.view(-1, 1, 1)).any(-1)
            if likeness is None:
                targets = hard_targets(shared, similarities)
            else:
                targets = soft_targets(likeness, shared, self.config.label_temperature)
            losses.append(target_contrastive(similarities, targets, self.config.loss_temperature))
        return torch.stack(losses).mean()


class LabelPair(NamedTuple):
    """An anchor and a positive that carry a label.

    Attributes:
        texts: Anchor and positive.
        label: The label's number in its space.
        carried: All labels of the two, (2, K) int64, filled with -1 to the most that any utterance of the space has.
        vector: The label's vector (E,), for soft targets.
    """

    texts: list[str]
    label: int
    carried: np.ndarray
    vector: np.ndarray | None = None


class LabelledUtterances:
    """The distinct utterances of dialogues by their labels in one space.

    Equal utterances, also those that ``text_forms`` makes equal, are one utterance with all their labels. The space is
    ``"actions"`` (acts and slots together, in canonical order), ``"acts"`` or ``"slots"``, in their unified names.

    Raises:
        InputError: No utterance carries a label, no label has enough utterances, or all are of one domain although
            pairs need two.
    """

    def __init__(self, dialogues: Sequence[Dialogue], space: str, config: Dialog2FlowConfig, seed: int) -> None:
        self.config, self.seed = config, seed
        known: dict[str, tuple[str, str, dict[str, None]]] = {}  # by text as compared: text, domain and labels
        labelled = short = 0
        for dialogue in dialogues:
            domain = dialogue.domains[0] if dialogue.domains and config.across_domains else ""
            for turn in dialogue.turns:
                labels = _labels(turn, space, single=len(dialogue.turns) == 1)
                words = turn.content.split() if config.text_forms == "raw" else _WORDS.findall(turn.content)
                labelled += bool(labels)
                if labels and len(words) < config.min_words:
                    short += 1
                elif labels:
                    text = turn.content if config.text_forms == "raw" else utterance_words(turn.content)
                    known.setdefault(text, (turn.content, domain, {}))[2].update(dict.fromkeys(labels))
        if not labelled:
            raise InputError(
                "dialog2flow learns from dialogue acts and slots, or intents of utterances on their own: none of "
                f"{len(dialogues)} dialogues has {space}; name a corpus with such labels ('dialemb corpus list' shows "
                "them), or another target"
            )
        self.notes = [f"Left out {short:,} turns of fewer than {config.min_words} words ({space})"] * bool(short)
        self._number(list(known.values()), space)

    def _number(self, utterances: list[tuple[str, str, dict[str, None]]], space: str) -> None:
        """Assign numbers to utterances (text, domain, labels) and to labels of enough utterances."""
        sizes = Counter(label for *_, labels in utterances for label in labels)
        least = self.config.min_utterances
        self.labels = sorted(label for label, size in sizes.items() if size >= least)
        if rare := len(sizes) - len(self.labels):
            self.notes.append(f"Left out {rare:,} of {len(sizes):,} {space}: fewer than {least} utterances each")
        if len(self.labels) < 2:
            raise InputError(
                f"dialog2flow: got {len(self.labels)} {space} of at least {least} different utterances "
                "(min_utterances), expected two or more; add dialogues or lower min_utterances"
            )
        numbers = {label: number for number, label in enumerate(self.labels)}
        carried = [[numbers[label] for label in labels if label in numbers] for *_, labels in utterances]
        kept = [row for row, labels in enumerate(carried) if labels]
        self.texts = [utterances[row][0] for row in kept]
        domains = [utterances[row][1] for row in kept]
        places = np.unique(domains, return_inverse=True)[1]
        if self.config.across_domains and not places.any():
            raise InputError(
                f"across_domains: got utterances of one domain ({domains[0] or 'none named'}), expected two or more; "
                "give dialogues 'domains', or leave across_domains out"
            )
        self.carried = np.full((len(kept), max(map(len, carried))), -1)
        for place, row in enumerate(kept):
            self.carried[place, : len(carried[row])] = carried[row]
        rows, columns = np.nonzero(self.carried >= 0)
        labels = self.carried[rows, columns]
        counts = np.bincount(labels)
        # The utterances of a label by domain.
        self.members = np.split(rows[np.lexsort((rows, places[rows], labels))], np.cumsum(counts)[:-1])
        self.domains = [places[part] for part in self.members]
        weights = counts ** (1 - self.config.label_balance)
        self.ends = np.cumsum(np.maximum(1, np.round(counts.sum() * weights / weights.sum()))).astype(np.int64)

    def __len__(self) -> int:
        return int(self.ends[-1])

    def _places(self, index: int) -> tuple[int, int, int]:
        """Return the label of a pair, and where its anchor's domain begins and ends among the label's utterances."""
        label = int(np.searchsorted(self.ends, index, side="right"))
        domains, before = self.domains[label], int(self.ends[label - 1]) if label else 0
        domain = domains[(index - before) * len(domains) // (int(self.ends[label]) - before)]
        first, end = np.searchsorted(domains, [domain, domain + 1])
        return label, int(first), int(end)

    def domain(self, index: int) -> int:
        """Return the domain of a pair's anchor, the same in every epoch."""
        label, first, _ = self._places(index)
        return int(self.domains[label][first])

    def pair(self, epoch: int, index: int) -> LabelPair:
        """Draw a pair: in an epoch the anchors of a label go round its utterances, the positive is any other.

        Across domains, anchors go round the utterances of a domain, and the positive is of another domain if possible.
        """
        label, first, end = self._places(index)
        members = self.members[label]
        offset = int(np.random.default_rng([self.seed, epoch, label, 0]).integers(len(members)))
        generator = np.random.default_rng([self.seed, epoch, index, 1])
        anchor = first + (index + offset) % (end - first)
        if end - first < len(members):
            positive = (end + int(generator.integers(len(members) - end + first))) % len(members)
        else:
            positive = (anchor + 1 + int(generator.integers(len(members) - 1))) % len(members)
        rows, texts, form = members[[anchor, positive]], [], self.config.text_forms
        for row in rows:
            as_words = form == "words" or (form == "both" and generator.random() < 0.5)
            texts.append(utterance_words(self.texts[row]) if as_words else self.texts[row])
        return LabelPair(texts, label, self.carried[rows])


def utterance_words(text: str) -> str:
    """Return the words of an utterance in lower case, without punctuation."""
    return " ".join(_WORDS.findall(text.lower()))


def _labels(turn: Turn, space: str, single: bool) -> list[str]:
    slots = [name for name, _ in turn.slots]
    if space == "actions":
        action = action_name(turn.dialogue_acts, slots)
        return [action] if action else [f"intent {intent}" for intent in turn.intents if single]
    return list(dict.fromkeys(name for name in (turn.dialogue_acts if space == "acts" else slots) if name))


class Dialog2FlowExamples(Examples):
    """Pairs of utterances of one label (section 3 and appendix B)."""

    def __init__(self, dialogues: Sequence[Dialogue], config: Dialog2FlowConfig, seed: int) -> None:
        spaces = [
            LabelledUtterances(dialogues, space, config, seed + number)
            for number, space in enumerate(OBJECTIVES[config.target])
        ]
        super().__init__(spaces, [note for space in spaces for note in space.notes])
        # A label's meaning does not depend on its space: "confirm" the act and "confirm" the slot share a vector.
        names = sorted({label for space in spaces for label in space.labels})
        self.label_texts = names if config.contrast == "soft" else []
        self.label_rows = {name: row for row, name in enumerate(names)}
        self.label_vectors = np.zeros((len(names), 0), dtype=np.float32)

    def __len__(self) -> int:
        return min(map(len, self.items))

    def length(self, index: int) -> int:
        """Return the domain of an example, so that a batch holds few."""
        first: LabelledUtterances = self.items[0]
        return first.domain(index * len(first) // len(self))

    def example(self, epoch: int, index: int) -> list[LabelPair]:
        """Draw a pair of each label space, with its label's vector."""
        pairs = []
        for space in self.items:
            # A longer space is walked in longer steps, so that every epoch reaches all of its labels.
            pair = space.pair(epoch, index * len(space) // len(self))
            vector = self.label_vectors[self.label_rows[space.labels[pair.label]]] if self.label_texts else None
            pairs.append(pair._replace(vector=vector))
        return pairs


def collate(
    examples: list[list[LabelPair]], tokenizer: PreTrainedTokenizerBase, config: Dialog2FlowConfig, count: Truncation
) -> dict[str, Tensor]:
    """Lay out B examples of one pair per label space, as `Dialog2FlowModel.contrast` takes them."""
    texts = [text for example in examples for pair in example for text in pair.texts]
    batch = tokenize_utterances(texts, tokenizer, config.max_tokens, count, config.prompt)
    batch = {name: tensor.unflatten(0, (len(examples), -1)) for name, tensor in batch.items()}
    batch["drawn_labels"] = torch.tensor([[pair.label for pair in example] for example in examples])
    # As wide as the whole data needs: processes gather tensors of one shape.
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
