"""Dialog2Flow: utterance embeddings grouped by what utterances do (Burdisso et al., EMNLP 2024, arXiv:2410.18481).

Utterances that carry the same action (dialogue acts and slots) are positive pairs; how much the others of the batch
are negatives depends on how alike the actions' names are. An utterance on its own that has neither, as corpora of
intents have them, carries its intents for actions (not in the paper).
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase
from transformers import initialization as init

from ..dialogue import Dialogue, Turn, action_name
from ..errors import InputError
from ..ranges import ABOVE_ZERO, Range, Ranges
from .backbone_model import autocast_off
from .config import UtteranceConfig
from .gather import gather_rows
from .layout import Truncation, tokenize_utterances
from .losses import hard_targets, soft_targets, target_contrastive
from .method import ListedExamples, Method
from .utterance import UtteranceEncoder, UtteranceOutput, positives_first

_WORDS = re.compile(r"[a-zA-Z0-9'?]+")

OBJECTIVES = {"single": ("actions",), "joint": ("acts", "slots")}
"""The label spaces of a target; each has a contrastive head of its own."""


@strict
class Dialog2FlowConfig(UtteranceConfig):
    """Settings of Dialog2Flow, beside those of `UtteranceConfig`.

    Attributes:
        target: ``"single"``: the action, acts and slots together; ``"joint"``: acts and slots apart, with two heads
            (section 3.2).
        contrast: ``"soft"``: targets by the likeness of labels (equation 4); ``"hard"``: supervised contrastive
            learning (equation 1).
        joint_update: ``"summed"``: the sum of both losses, as the paper writes it; ``"alternating"``: one batch of
            acts, one of slots, as the released program does (which keeps two optimisers; here it is one).
        loss_temperature: Divides the cosines of utterances (0.05).
        label_temperature: Divides the cosines of labels (0.35).
        label_encoder: A sentence-transformers model that embeds the labels; not used by ``"hard"``.
        label_balance: From 0, pairs of a label in proportion to its utterances, to 1, as many for every label (the
            program's ``extend``).
        min_utterances: Labels of fewer distinct utterances are left out (the paper: 101).
        min_words: Shorter utterances are left out (the paper: 2).
        text_forms: ``"raw"``; ``"words"``: lower case, without punctuation, as in the released program; ``"both"``:
            either, drawn per utterance, so that transcripts of both kinds serve; ``"official"``: ``"words"`` with the
            program's error that turns a question mark after a space into an apostrophe.
        across_domains: The anchors of a batch are of few domains, mostly one (those of acts, where the target is
            joint), and positives of other ones where the label allows, so that knowing what is spoken about helps
            nobody (not in the paper).
    """

    model_type = "dialemb-dialog2flow"
    ranges: ClassVar[Ranges] = {
        "loss_temperature": ABOVE_ZERO, "label_temperature": ABOVE_ZERO, "label_balance": Range(0, 1),
        "min_utterances": Range(2), "min_words": Range(1),
    }  # fmt: skip

    target: Literal["single", "joint"] = "single"
    contrast: Literal["soft", "hard"] = "soft"
    joint_update: Literal["summed", "alternating"] = "summed"
    loss_temperature: float = 0.05
    label_temperature: float = 0.35
    label_encoder: str = "sentence-transformers/multi-qa-mpnet-base-dot-v1"
    label_balance: float = 0.0
    min_utterances: int = 2
    min_words: int = 2
    text_forms: Literal["raw", "words", "both", "official"] = "raw"
    across_domains: bool = False


class _Side(NamedTuple):
    """One side of a batch's pairs: unit vectors (N, P), and all labels that each carries (N, K), filled with -1."""

    vectors: Tensor
    labels: Tensor


class Dialog2FlowModel(UtteranceEncoder):
    """The encoder with one contrastive head per label space."""

    config: Dialog2FlowConfig
    batches: Tensor

    def __init__(self, config: Dialog2FlowConfig) -> None:
        super().__init__(config, OBJECTIVES[config.target])
        self.register_buffer("batches", torch.zeros((), dtype=torch.long), persistent=config.target == "joint")

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if module is self and getattr(self, "batches", None) is not None:  # it comes after what the parent draws
            init.zeros_(self.batches)

    def contrast(  # type: ignore[override]
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        drawn_labels: Tensor,
        carried_labels: Tensor,
        label_vectors: Tensor | None = None,
    ) -> UtteranceOutput:
        """Contrasts pairs of each label space (section 3.2).

        Args:
            input_ids: (B, 2 O, L) int64 for O label spaces: anchor and positive of the first, then of the second.
            attention_mask: (B, 2 O, L) int64.
            drawn_labels: The label that each pair was drawn for, (B, O) int64.
            carried_labels: All labels that each utterance carries, (B, 2 O, K) int64, filled with -1.
            label_vectors: Unit vectors of the drawn labels, (B, O, E); None for hard targets.
        """
        chosen = list(range(len(OBJECTIVES[self.config.target])))
        if self.config.joint_update == "alternating" and self.training and len(chosen) > 1:
            chosen = [int(self.batches) % len(chosen)]
            self.batches += 1
        rows = [row for space in chosen for row in (2 * space, 2 * space + 1)]
        batch, count = len(input_ids), len(rows)
        embeddings = self.embed(input_ids[:, rows].flatten(0, 1), attention_mask[:, rows].flatten(0, 1))
        embeddings = embeddings.unflatten(0, (batch, count))  # (B, 2 O, D)
        losses, similarities = [], None
        with autocast_off(embeddings):
            for place, space in enumerate(chosen):
                name = OBJECTIVES[self.config.target][space]
                pairs = embeddings[:, 2 * place : 2 * place + 2], carried_labels[:, 2 * space : 2 * space + 2]
                sides = [_Side(self.project(pairs[0][:, side], name), pairs[1][:, side]) for side in (0, 1)]
                vectors = None if label_vectors is None else label_vectors[:, space]
                losses.append(self._loss(sides, drawn_labels[:, space], vectors))
                similarities = (sides[0].vectors @ sides[1].vectors.T).detach() if place == 0 else similarities
        assert similarities is not None
        return UtteranceOutput(
            loss=torch.stack(losses).sum(), pooler_output=embeddings[:, 0], similarities=positives_first(similarities)
        )

    def _loss(self, sides: list[_Side], drawn: Tensor, label_vectors: Tensor | None) -> Tensor:
        everyone = [_Side(*(gather_rows(tensor, self.training)[0] for tensor in side)) for side in sides]
        likeness = None
        if label_vectors is not None:
            likeness = label_vectors @ gather_rows(label_vectors, self.training)[0].T
        losses = []
        for anchors, candidates in ((sides[0], everyone[1]), (sides[1], everyone[0])):
            similarities = anchors.vectors @ candidates.vectors.T  # (A, C)
            # What was drawn for another label is a positive too if it carries this one, as an equal utterance does.
            shared = (candidates.labels.unsqueeze(0) == drawn.view(-1, 1, 1)).any(-1)
            if likeness is None:
                targets = hard_targets(shared, similarities)
            else:
                targets = soft_targets(likeness, shared, self.config.label_temperature)
            losses.append(target_contrastive(similarities, targets, self.config.loss_temperature))
        return torch.stack(losses).mean()


class LabelPair(NamedTuple):
    """An anchor and a positive that carry a label, by its number in its space, and its vector (E,), if there is one.

    ``carried`` are all labels of each of them; ``width`` is the most that any utterance of the space carries.
    """

    texts: tuple[str, str]
    label: int
    carried: tuple[tuple[int, ...], tuple[int, ...]]
    width: int
    vector: np.ndarray | None = None


class LabelledUtterances:
    """The distinct utterances of dialogues by their labels in one space.

    An utterance that was said often, or under several labels, is one utterance that carries all of them; so are those
    that ``text_forms`` makes alike. The space is ``"actions"`` (acts and slots together, in canonical order; of an
    utterance on its own without them its intents), ``"acts"`` or ``"slots"``, all in their unified names.

    Raises:
        InputError: No utterance carries a label, no label has enough utterances, or all are of one domain where pairs
            are to be of two.
    """

    def __init__(self, dialogues: Sequence[Dialogue], space: str, config: Dialog2FlowConfig, seed: int) -> None:
        self.config, self.seed = config, seed
        carried: dict[str, dict[str, None]] = {}
        first: dict[str, tuple[str, str]] = {}  # what was said as it stands, and its domain
        labelled = wordless = 0
        for dialogue in dialogues:
            domain = dialogue.domains[0] if dialogue.domains else ""
            for turn in dialogue.turns:
                labels = _labels(turn, space)
                if space == "actions" and not labels and len(dialogue.turns) == 1:
                    labels = [f"intent {intent}" for intent in turn.intents]
                labelled += bool(labels)
                if labels and _word_count(turn.content, config.text_forms) < config.min_words:
                    wordless += 1
                elif labels:
                    form = "words" if config.text_forms == "both" else config.text_forms
                    text, _ = first.setdefault(utterance_text(turn.content, form), (turn.content, domain))
                    carried.setdefault(text, {}).update(dict.fromkeys(labels))
        if not labelled:
            raise InputError(
                "dialog2flow learns from dialogue acts and slots, or intents of utterances on their own: none of "
                f"{len(dialogues)} dialogues has {space}; name a corpus with such labels ('dialemb corpus list' shows "
                "them), or another target"
            )
        self.notes = [f"Left out {wordless:,} turns of fewer than {config.min_words} words ({space})"] * bool(wordless)
        self._count(carried, space)
        self._order(dict(first.values()))

    def _count(self, carried: dict[str, dict[str, None]], space: str) -> None:
        """Numbers utterances and labels, and leaves out labels of too few utterances."""
        sizes = Counter(label for labels in carried.values() for label in labels)
        self.labels = sorted(label for label, size in sizes.items() if size >= self.config.min_utterances)
        rare = len(sizes) - len(self.labels)
        if rare:
            least = self.config.min_utterances
            self.notes.append(f"Left out {rare:,} of {len(sizes):,} {space}: fewer than {least} utterances each")
        if len(self.labels) < 2:
            raise InputError(
                f"dialog2flow: got {len(self.labels)} {space} of at least {self.config.min_utterances} different "
                f"utterances (min_utterances), expected two or more; add dialogues or lower min_utterances"
            )
        numbers = {label: number for number, label in enumerate(self.labels)}
        self.texts: list[str] = []
        self.carried: list[tuple[int, ...]] = []
        members: list[list[int]] = [[] for _ in self.labels]
        for text, labels in carried.items():
            known = tuple(numbers[label] for label in labels if label in numbers)
            for number in known:
                members[number].append(len(self.texts))
            if known:
                self.texts.append(text)
                self.carried.append(known)
        self.members = [np.array(rows) for rows in members]
        self.width = max(map(len, self.carried))
        counts = np.array([len(rows) for rows in members], dtype=np.float64)
        weights = counts ** (1 - self.config.label_balance)
        self.ends = np.cumsum(np.maximum(1, np.round(counts.sum() * weights / weights.sum()))).astype(np.int64)

    def _order(self, domains: dict[str, str]) -> None:
        """Numbers domains, and puts the utterances of a label in their order; one number where they play no part."""
        names = [domains[text] if self.config.across_domains else "" for text in self.texts]
        numbers = np.unique(names, return_inverse=True)[1]
        if self.config.across_domains and not numbers.any():
            raise InputError(
                f"across_domains: got utterances of one domain ({names[0] or 'none named'}), expected two or more; "
                "give dialogues 'domains', or leave across_domains out"
            )
        self.members = [rows[np.argsort(numbers[rows], kind="stable")] for rows in self.members]
        self.domains = [numbers[rows] for rows in self.members]

    def __len__(self) -> int:
        return int(self.ends[-1])

    def _places(self, index: int) -> tuple[int, int, int]:
        """Finds the label of a pair, and the first and last place + 1 of its anchor's domain among the members."""
        label = int(np.searchsorted(self.ends, index, side="right"))
        domains, before = self.domains[label], int(self.ends[label - 1]) if label else 0
        domain = domains[(index - before) * len(domains) // (int(self.ends[label]) - before)]
        first, end = np.searchsorted(domains, [domain, domain + 1])
        return label, int(first), int(end)

    def domain(self, index: int) -> int:
        """Finds the domain of a pair's anchor, which is the same in every epoch."""
        label, first, _ = self._places(index)
        return int(self.domains[label][first])

    def pair(self, epoch: int, index: int) -> LabelPair:
        """Draws a pair: within an epoch the anchors of a label go round its utterances, the positive is any other.

        Across domains, anchors go round those of a domain, and the positive is any of another domain, if there is one.
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
        rows = int(members[anchor]), int(members[positive])
        forms = self.config.text_forms
        texts = [self.texts[row] for row in rows]
        if forms == "both":
            texts = [utterance_text(text, "words") if generator.random() < 0.5 else text for text in texts]
        else:
            texts = [utterance_text(text, forms) for text in texts]
        return LabelPair((texts[0], texts[1]), label, (self.carried[rows[0]], self.carried[rows[1]]), self.width)


def utterance_text(text: str, form: str) -> str:
    """Gives an utterance the form ``"raw"``, ``"words"`` or ``"official"`` (see `Dialog2FlowConfig`)."""
    if form == "raw":
        return text
    words = " ".join(_WORDS.findall(text.lower()))
    return words.replace(" ?", "'") if form == "official" else words


def _word_count(text: str, forms: str) -> int:
    return len(text.split()) if forms == "raw" else len(_WORDS.findall(text))


def _labels(turn: Turn, space: str) -> list[str]:
    slots = [name for name, _ in turn.slots]
    if space == "actions":
        action = action_name(turn.dialogue_acts, slots)
        return [action] if action else []
    return list(dict.fromkeys(name for name in (turn.dialogue_acts if space == "acts" else slots) if name))


class Dialog2FlowExamples(ListedExamples):
    """Pairs of utterances of one label (section 3 and appendix B); example i is a pure function of (seed, epoch, i).

    Raises:
        InputError: No utterance carries a label, or no label has enough utterances.
    """

    def __init__(self, dialogues: Sequence[Dialogue], config: Dialog2FlowConfig, seed: int) -> None:
        self.config, self.seed = config, seed
        self.spaces = [
            LabelledUtterances(dialogues, space, config, seed + number)
            for number, space in enumerate(OBJECTIVES[config.target])
        ]
        self.notes = [note for space in self.spaces for note in space.notes]
        # What a label means does not depend on the space: "confirm" the act and "confirm" the slot share a vector.
        names = sorted({label for space in self.spaces for label in space.labels})
        self.label_texts = names if config.contrast == "soft" else []
        self.label_rows = {name: row for row, name in enumerate(names)}
        self.label_vectors = np.zeros((len(names), 0), dtype=np.float32)

    def __len__(self) -> int:
        return min(map(len, self.spaces))

    def length(self, index: int) -> int:
        """Returns the domain of an example, so that a batch holds few."""
        return self.spaces[0].domain(index * len(self.spaces[0]) // len(self))

    def example(self, epoch: int, index: int) -> list[LabelPair]:
        """Draws a pair of each label space, its label's vector with it."""
        pairs = []
        for space in self.spaces:
            # A longer space is walked in longer steps, so that all of its labels have their turn in every epoch.
            pair = space.pair(epoch, index * len(space) // len(self))
            vector = self.label_vectors[self.label_rows[space.labels[pair.label]]] if self.label_texts else None
            pairs.append(pair._replace(vector=vector))
        return pairs


def collate(
    examples: list[list[LabelPair]], tokenizer: PreTrainedTokenizerBase, config: Dialog2FlowConfig, count: Truncation
) -> dict[str, Tensor]:
    """Lays out B examples of one pair per label space, as `Dialog2FlowModel.contrast` takes them."""
    texts = [text for example in examples for pair in example for text in pair.texts]
    batch = tokenize_utterances(texts, tokenizer, config.max_tokens, count)
    batch = {name: tensor.unflatten(0, (len(examples), -1)) for name, tensor in batch.items()}
    batch["drawn_labels"] = torch.tensor([[pair.label for pair in example] for example in examples])
    carried = [[labels for pair in example for labels in pair.carried] for example in examples]
    width = max(pair.width for pair in examples[0])  # of the whole data: processes gather tensors of one shape
    batch["carried_labels"] = torch.tensor(
        [[[*labels, *[-1] * (width - len(labels))] for labels in row] for row in carried]
    )
    if config.contrast == "soft":
        vectors = np.stack([np.stack([pair.vector for pair in example]) for example in examples])  # type: ignore[misc]
        batch["label_vectors"] = torch.nn.functional.normalize(torch.from_numpy(vectors), dim=-1)
    return batch


def prepare(settings: dict[str, Any], arguments: Any) -> None:  # noqa: ANN401 - TrainingArguments
    """Lets distributed training wait for no head that has no part in a step."""
    if settings.get("joint_update") == "alternating" and arguments.ddp_find_unused_parameters is None:
        arguments.ddp_find_unused_parameters = True  # with checkpointing Trainer expects all


METHOD = Method(
    "dialog2flow",
    Dialog2FlowConfig,
    Dialog2FlowModel,
    Dialog2FlowExamples,
    collate,
    labelled=True,
    in_batch_negatives=True,
    prepare=prepare,
    title="Dialog2Flow",
    paper="burdisso-etal-2024-dialog2flow",
    suite="dialog2flow",
    what=(
        "Utterances that carry the same action (dialogue acts and slots) are positive pairs in training; how much the "
        "others of the batch are negatives depends on how alike the actions' names are, where the target is soft. "
        "Vectors group utterances by what they do. The vector of an utterance is the mean of its tokens'."
    ),
)
