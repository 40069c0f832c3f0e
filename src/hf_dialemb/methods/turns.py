"""Turns that are found.

A question competes for the turn that answers it, which is read in its surroundings.

The other turns of the conversation, and those of the batch's other conversations, are the
negatives. Vectors of turns are made as `Encoder.encode_turns` makes them, after the late chunking
of Günther et al., 2024 (arXiv:2409.04701).
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import ClassVar, NamedTuple
from zlib import crc32

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor
from torch.nn.functional import normalize, one_hot, pad
from transformers import PreTrainedTokenizerBase

from ..dialogue import ROLES, Dialogue, Turn
from ..errors import InputError
from ..ranges import ABOVE_ZERO, Range, Ranges
from .backbone_model import autocast_off
from .config import UtteranceConfig
from .context_window import READ
from .layout import (
    Truncation,
    framed,
    pad_right,
    special_tokens_around,
    spread,
    text_ids,
    tokenize_utterances,
)
from .losses import gather_rows, precise
from .method import ABOUT, Examples, Method
from .sessions import (
    BESIDE,
    DOCUMENTS,
    THEM,
    Question,
    asked_of_each_other,
    questions_of,
    sessions,
    spoken,
)
from .utterance import UtteranceEncoder, UtteranceOutput

NAMES = (
    "Anna",
    "Ben",
    "Carla",
    "David",
    "Emma",
    "Felix",
    "Grace",
    "Henry",
    "Irene",
    "Jack",
    "Laura",
    "Mark",
    "Nina",
    "Omar",
    "Paul",
    "Rosa",
    "Sam",
    "Tina",
    "Victor",
    "Yusuf",
)
"""What speakers are called in training whose names are not known."""


@strict
class TurnsConfig(UtteranceConfig):
    """Settings of the method, beside those of `UtteranceConfig`.

    Attributes:
        loss_temperature: Divides the cosines (0.05).
        window: The most turns of a conversation that are read together.
        questions: The most questions to them.
    """

    model_type = "dialemb-turns"
    ranges: ClassVar[Ranges] = {
        "loss_temperature": ABOVE_ZERO,
        "window": Range(2),
        "questions": Range(1),
    }

    max_tokens: int = 128
    projection_size: int | None = None
    loss_temperature: float = 0.05
    window: int = 12
    questions: int = 4


class TurnsModel(UtteranceEncoder):
    """The encoder, which reads questions alone, and turns alone and together."""

    config: TurnsConfig

    def contrast(  # type: ignore[override]
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        session_ids: Tensor,
        session_mask: Tensor,
        owners: Tensor,
        keys: Tensor,
        answers: Tensor,
    ) -> UtteranceOutput:
        """Contrast the answer of each question with all turns of the batch, on all processes.

        Args:
            input_ids: Q questions and W turns, (B, Q + W, L) int64.
            attention_mask: 1 for real tokens, (B, Q + W, L) int64; all 0 for absent rows.
            session_ids: The turns as one text, (B, M) int64.
            session_mask: 1 for its real tokens, (B, M) int64.
            owners: The turn that each of its tokens belongs to, W for none, (B, M) int64.
            keys: A number for each text, (B, Q + W) int64; 0 for absent ones. No negative is a turn
                with the answer's text, or a turn of another example that is asked the same.
            answers: The place of each answer among the turns, (B, Q) int64; -1 for absent
                questions.
        """
        present = attention_mask.any(-1)
        split = [self.config.questions, self.config.window]
        vectors = self.embed(input_ids[present], attention_mask[present])
        rows = vectors.new_zeros(*present.shape, vectors.shape[-1])
        rows[present] = vectors
        together = self.in_parts(self._means, session_ids, session_mask, owners)
        asked = (answers >= 0).nonzero(as_tuple=True)
        example = asked[0]
        with autocast_off(rows):
            questions, alone = normalize(precise(rows), dim=-1).split(split, dim=1)
            turns = normalize(with_neighbours(alone) + normalize(together, dim=-1), dim=-1)
            everyone, first = gather_rows(turns, self.training)
            known, _ = gather_rows(keys, self.training)
            known_questions, known_turns = known.split(split, dim=1)
            own = torch.zeros(
                len(example), *known_turns.shape, dtype=torch.bool, device=turns.device
            )
            own[torch.arange(len(example)), first + example, answers[asked]] = True
            others = (keys[asked][:, None, None] == known_questions).any(-1)  # (N, C)
            others[torch.arange(len(example)), first + example] = False
            answered = keys[:, split[0] :][example, answers[asked]][:, None, None]
            left_out = others[:, :, None] | (known_turns == 0) | (known_turns == answered)
            cosines = torch.einsum("nd,cwd->ncw", questions[asked], everyone).masked_fill(
                left_out & ~own, -torch.inf
            )
            similarities = torch.cat(
                [cosines[own][:, None], cosines.masked_fill(own, -torch.inf).flatten(1)], dim=1
            )
            loss = -torch.log_softmax(similarities / self.config.loss_temperature, dim=1)[
                :, 0
            ].mean()
        return UtteranceOutput(loss, rows[asked], similarities=similarities.detach().unsqueeze(-1))

    def _means(self, words: Tensor, mask: Tensor, owners: Tensor) -> Tensor:
        """Average the tokens of each turn, (N, W, D), in texts (N, M) that hold several."""
        hidden = self.states_of(words, mask)
        with autocast_off(hidden):
            belongs = one_hot(owners, self.config.window + 1)[..., :-1].to(precise(hidden).dtype)
            return belongs.mT @ precise(hidden) / belongs.sum(1).clamp(min=1).unsqueeze(-1)


def with_neighbours(units: Tensor) -> Tensor:
    """Add to unit vectors of turns (B, W, D) those beside them, as `encode_turns` does.

    Absent ones are 0.
    """
    return normalize(
        units + sum(weight * pad(units, (0, 0, far, -far)) for far, weight in BESIDE.items()),
        dim=-1,
    )


class Asked(NamedTuple):
    """Some turns, questions asked after them, and the place of each answer among them."""

    turns: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[int, ...]


class _Session(NamedTuple):
    turns: tuple[Turn, ...]
    questions: list[Question]  # places are those of the session; `THEM` is who answers


class TurnsExamples(Examples):
    """Each question once an epoch, with turns around its answer and further questions.

    Dialogues without questions of their own are asked for their slots, and give what speakers ask
    each other; speakers without names get some.
    """

    def __init__(self, dialogues: Sequence[Dialogue], config: TurnsConfig, seed: int) -> None:
        self.sessions = [session for dialogue in dialogues for session in _sessions(dialogue)]
        pairs = (
            (number, question)
            for number, item in enumerate(self.sessions)
            for question in item.questions
        )
        super().__init__(list(pairs), config=config, seed=seed)
        if not self.items:
            raise InputError(
                f"turns: got no question from {len(dialogues)} dialogues, expected dialogues with "
                "questions in their metadata, or whose speakers ask each other; add some"
            )

    def example(self, epoch: int, index: int) -> Asked:
        """Return at most ``window`` turns, one of them an answer, and ``questions`` questions."""
        number, question = self.items[index]
        generator = np.random.default_rng([self.seed, epoch, index])
        turns, known = self.sessions[number]
        answer = int(generator.choice(question.turns))
        size = self.config.window
        first = max(0, answer - size + 1)
        last = max(0, min(answer, question.before - size))
        start = int(generator.integers(first, last, endpoint=True))
        stop = min(start + size, question.before)
        names = dict(zip(ROLES, generator.permutation(NAMES).tolist(), strict=False))
        named = [
            turn if turn.name else replace(turn, name=names[turn.role])
            for turn in turns[start:stop]
        ]
        chosen = [(question.text, answer)]
        for place in generator.permutation(len(known)):
            text, answers, before = known[place]
            inside = [at for at in answers if start <= at < stop]
            if (
                inside
                and before >= stop
                and text != question.text
                and len(chosen) < self.config.questions
            ):
                chosen.append((text, inside[0]))
        texts = tuple(text.replace(THEM, named[at - start].name) for text, at in chosen)
        return Asked(tuple(map(spoken, named)), texts, tuple(at - start for _, at in chosen))


def _sessions(dialogue: Dialogue) -> Iterator[_Session]:
    """Divide a dialogue; leave out turns that are asked again in the third person."""
    given = list(questions_of(dialogue))
    begin = 0
    for turns in sessions(dialogue):
        own = "questions" in dialogue.metadata
        asked = {} if own else {place: text for text, place in asked_of_each_other(turns)}
        places = [place for place in range(len(turns)) if place not in asked]
        now = {place: at for at, place in enumerate(places)}
        answered = [(text, [place + 1], len(turns)) for place, text in asked.items()]
        answered += [
            (text, [at - begin for at in answers], before - begin)
            for text, answers, before in given
        ]
        questions = []
        for text, answers, before in answered:
            known = bisect_left(places, before)
            at = tuple(now[place] for place in answers if place in now)
            if at and known > 1:
                questions.append(Question(text, at, known))
        yield _Session(tuple(turns[place] for place in places), questions)
        begin += len(turns)


def collate(
    examples: list[Asked],
    tokenizer: PreTrainedTokenizerBase,
    config: TurnsConfig,
    count: Truncation,
) -> dict[str, Tensor]:
    """Lay out B examples as `TurnsModel.contrast` takes them.

    Turns that are read together have at most `READ` tokens: the furthest from the first answer are
    left out. Questions get the prompt of queries, turns and what is read together that of
    documents.
    """
    before, after = special_tokens_around(tokenizer)
    query_prompt = config.prompt_of("query")
    document_prompt = config.prompt_of(*DOCUMENTS)
    [opening] = text_ids([document_prompt], tokenizer)
    room = READ - len(before) - len(opening) - len(after)
    width = config.questions + config.window
    texts: dict[int, str] = {}
    owners = []
    sessions_read = []
    answers = torch.full((len(examples), config.questions), -1)
    for number, (turns, questions, places) in enumerate(examples):
        ids = text_ids(turns, tokenizer, config.max_tokens)
        ids = [row[: config.max_tokens - len(before) - len(after)] for row in ids]
        first = 0
        stop = len(ids)
        while sum(map(len, ids[first:stop])) > room and stop - first > 1:
            if 2 * places[0] >= first + stop:
                first += 1
            else:
                stop -= 1
        kept = [
            (text, at - first)
            for text, at in zip(questions, places, strict=True)
            if first <= at < stop
        ]
        answers[number, : len(kept)] = torch.tensor([at for _, at in kept])
        texts.update(enumerate([query_prompt + text for text, _ in kept], number * width))
        written = [document_prompt + text for text in turns[first:stop]]
        texts.update(enumerate(written, number * width + config.questions))
        sessions_read.append([*opening, *chain.from_iterable(ids[first:stop])])
        places_read = [place for place, row in enumerate(ids[first:stop]) for _ in row][:room]
        around = [config.window] * (len(before) + len(opening)), [config.window] * len(after)
        owners.append([*around[0], *places_read, *around[1]])
    rows = list(texts)
    keys = torch.zeros(width * len(examples), dtype=torch.int64)
    keys[rows] = torch.tensor([1 + crc32(text.encode()) for text in texts.values()])
    batch = tokenize_utterances(list(texts.values()), tokenizer, config.max_tokens, count)
    batch = spread(batch, rows, len(examples), width, tokenizer)
    together = framed(sessions_read, tokenizer, READ, Truncation(), "start")
    batch |= {"session_ids": together["input_ids"], "session_mask": together["attention_mask"]}
    batch |= {"owners": pad_right(owners, config.window)["input_ids"]}
    return batch | {"keys": keys.unflatten(0, (-1, width)), "answers": answers}


METHOD = Method(
    "turns",
    TurnsConfig,
    TurnsModel,
    TurnsExamples,
    collate,
    min_turns=2,
    in_batch_negatives=True,
    **ABOUT["turns"],
)
