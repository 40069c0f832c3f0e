"""Examples for the trainer, a pure function of (seed, epoch, index) in any process and order."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import Dataset, Sampler
from transformers import PreTrainedTokenizerBase, TrainingArguments

from ..data.examples import read_candidates
from ..dialogue import Dialogue, plain
from ..encoders.load_encoder import load_encoder
from ..errors import InputError
from ..methods.layout import Truncation
from ..methods.method import Examples, Method
from ..methods.ranker import RankingExample, encode_responses, load_ranker
from .settings import Report, RunArguments


@dataclass(eq=False)
class ExampleDataset(Dataset[Any]):
    """A method's examples by a running number: ``epoch * len + index``.

    The epoch is part of the number, so that workers, processes and resumed runs share the sampler's
    epoch.
    """

    examples: Examples
    dialogues: Sequence[Dialogue] = ()
    sampler: "EpochSampler | None" = None

    def __len__(self) -> int:
        return len(self.examples)

    def set_epoch(self, epoch: int) -> None:
        """Set the sampler's epoch.

        Accelerate reaches the data alone within a resumed epoch of several processes.
        """
        if self.sampler is not None:
            self.sampler.set_epoch(epoch)

    def __getitem__(self, number: int) -> Any:
        epoch, index = divmod(number, len(self.examples))
        return self.examples.example(epoch, index)


class EpochSampler(Sampler[int]):
    """Shuffle each epoch by (seed, epoch), with examples of similar length in one batch.

    A batch is that of all processes.
    """

    def __init__(self, examples: Examples, batch_size: int, seed: int) -> None:
        self.lengths = np.array([examples.length(index) for index in range(len(examples))])
        self.batch_size = batch_size
        self.seed = seed
        self.epoch = 0

    def __len__(self) -> int:
        return len(self.lengths)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next pass."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        generator = np.random.default_rng([self.seed, self.epoch])
        order = generator.permutation(len(self.lengths))
        # Sorting all would make every batch a class of its own length; sorting within 16 batches
        # keeps the padding small and the batches mixed. The last, shorter batch stays last.
        slice_size = 16 * self.batch_size
        batches: list[np.ndarray] = []
        for start in range(0, len(order), slice_size):
            part = order[start : start + slice_size]
            part = part[np.argsort(self.lengths[part], kind="stable")]
            batches.extend(
                part[at : at + self.batch_size] for at in range(0, len(part), self.batch_size)
            )
        full = len(order) // self.batch_size
        for at in [*generator.permutation(full), *range(full, len(batches))]:
            yield from (batches[at] + self.epoch * len(self.lengths)).tolist()


@dataclass(eq=False)
class Collator:
    """Bind a method's collate to a tokenizer and a config, and count what is truncated."""

    method: Method
    tokenizer: PreTrainedTokenizerBase
    config: Any
    truncation: Truncation = field(default_factory=Truncation)

    def __call__(self, examples: Sequence[Any]) -> dict[str, Tensor]:
        """Make a batch; see the method's ``collate``."""
        return self.method.collate(list(examples), self.tokenizer, self.config, self.truncation)


def make_examples(
    method: Method,
    dialogues: Sequence[Dialogue],
    config: Any,
    args: TrainingArguments,
    run: RunArguments,
    report: Report,
    part: str = "train",
) -> Examples:
    """Make a method's examples, and embed the labels and responses that they need."""
    if (
        part == "eval" and method.kind == "responses"
    ):  # candidates that choose a checkpoint are of all responses
        config = copy.deepcopy(config)
        config.granularity = None
    examples: Any = method.examples(dialogues, config, args.seed)
    for note in examples.notes:
        report(note)
    check_number(args, method, part, len(examples))
    with args.main_process_first():
        if labels := getattr(examples, "label_texts", None):
            examples.label_vectors = label_vectors(labels, config.label_encoder)
        if responses := getattr(examples, "response_texts", None):
            examples.response_vectors = response_vectors(
                responses, str(run.granularity_model), report
            )
    return examples  # type: ignore[no-any-return]


def check_number(args: Any, method: Method, part: str, count: int) -> None:
    """Raise InputError for fewer examples than a step takes over all processes, or than compare."""
    size = args.per_device_train_batch_size
    if part == "eval" and method.in_batch_negatives and count < 2:
        raise InputError(
            f"{method.name}: got {count} example to measure, expected two, as one is the other's "
            "negative; add dialogues"
        )
    if part == "train" and args.dataloader_drop_last and count < size * args.world_size:
        processes = f" on each of {args.world_size} processes" if args.world_size > 1 else ""
        raise InputError(
            f"per_device_train_batch_size: got {size}{processes}, but there are {count} examples; "
            "lower it or add data"
        )


def label_vectors(labels: Sequence[str], encoder: str) -> np.ndarray:
    """Embed K labels, (K, E) float32."""
    return load_encoder(encoder).encode_utterances(labels)


def given_examples(path: str) -> Examples:
    """Read the candidate sets that choose a checkpoint."""
    _, selections = read_candidates(path)
    examples = []
    for selection in selections:
        if (
            selection.correct
        ):  # it comes first; others that are correct or have the same text are left out
            correct = {plain(selection.responses[place]) for place in selection.correct}
            others = [text for text in selection.responses if plain(text) not in correct]
            examples.append(
                (selection.context, (selection.responses[selection.correct[0]], *others))
            )
    size = min((len(candidates) for _, candidates in examples), default=0)
    if size < 2:
        raise InputError(
            f"{path}: got no correct response, or a set of nothing else, expected a correct and a "
            "wrong one in a set; draw candidates again"
        )
    return Examples(
        [RankingExample(context, candidates[:size]) for context, candidates in examples]
    )


def response_vectors(responses: Sequence[str], model: str, report: Report) -> np.ndarray:
    """Embed N responses with a trained ranker, (N, D) float32."""
    vectors = encode_responses(load_ranker(model), responses, show_progress=True)
    report(f"Embedded {len(responses):,} responses with {model}")
    return vectors
