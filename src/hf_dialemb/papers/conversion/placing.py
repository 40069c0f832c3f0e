"""Place a checkpoint's tensors in a model by rules, check every shape, and account for every key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...errors import InputError


class Change(NamedTuple):
    """What happens to a tensor before it is placed: one tensor for each target."""

    text: str
    apply: Callable[[Tensor], Sequence[Tensor]]


AS_IT_IS = Change("", lambda tensor: (tensor,))
TRANSPOSED = Change("transposed", lambda tensor: (tensor.transpose(0, -1),))
IN_THREE = Change("a third: query, key, value", lambda tensor: tensor.chunk(3))
TRANSPOSED_IN_THREE = Change("transposed, a third: query, key, value", lambda tensor: tensor.transpose(0, -1).chunk(3))
REVERSED = Change("rows reversed", lambda tensor: (tensor.flip(0),))


class Rule(NamedTuple):
    """Where a key goes: the names of its targets in the model."""

    source: str
    targets: tuple[str, ...]
    change: Change = AS_IT_IS


class Placed(NamedTuple):
    """A key of the checkpoint and the key of the model that now holds its values."""

    source: str
    target: str
    shape: tuple[int, ...]
    change: str


@dataclass
class Report:
    """An account of all keys of the checkpoint and of the model.

    Attributes:
        made: Keys of the model that need no source, with the reason.
        dropped: Keys of the checkpoint that the model has no use for, with the reason.
        missing: Keys of the model that no key of the checkpoint fills.
        unexpected: Keys of the checkpoint that no rule names.
    """

    source: str
    model_type: str
    used: list[Placed] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield a line for every key, then the sums."""
        for placed in self.used:
            change = f" ({placed.change})" if placed.change else ""
            yield f"used        {placed.source} -> {placed.target} {list(placed.shape)}{change}"
        yield from (f"made        {key}: {reason}" for key, reason in self.made.items())
        yield from (f"dropped     {key}: {reason}" for key, reason in self.dropped.items())
        yield from (f"missing     {key}" for key in self.missing)
        yield from (f"unexpected  {key}" for key in self.unexpected)
        yield (
            f"{self.model_type}: {len({placed.source for placed in self.used})} keys used, {len(self.made)} made, "
            f"{len(self.dropped)} dropped, {len(self.missing)} missing, {len(self.unexpected)} unexpected"
        )

    def check(self) -> None:
        """Raise InputError if keys are missing or unexpected."""
        wrong = [(keys, name) for keys, name in ((self.missing, "missing"), (self.unexpected, "unexpected")) if keys]
        if wrong:
            some = [f"{len(keys)} {name} ({', '.join(keys[:3])})" for keys, name in wrong]
            raise InputError(
                f"'{self.source}': got keys that are {' and '.join(some)}, expected all keys of PLATO alone; "
                "pass --partial to convert what is there"
            )


def place(
    tensors: Mapping[str, Any],
    rules: Iterable[Rule],
    state: Mapping[str, Tensor],
    reasons: Iterable[tuple[str, str]],
    report: Report,
) -> None:
    """Copy tensors into the state of a model, and enter every key in the report.

    Args:
        tensors: The checkpoint's tensors or arrays by name.
        rules: Where each known key goes.
        state: The model's tensors by name; they are filled.
        reasons: Patterns of whole keys that are dropped, each with the reason; the first match counts.
        report: The account to complete.
    """
    known = set()
    for rule in rules:
        known.add(rule.source)
        if rule.source in tensors:
            value = tensors[rule.source]
            _fill(rule, value if isinstance(value, Tensor) else torch.tensor(value), state, report)
    filled = {placed.target for placed in report.used} | report.made.keys()
    report.missing += [target for target in state if target not in filled]
    for key in (key for key in tensors if key not in known):
        reason = next((reason for pattern, reason in reasons if re.fullmatch(pattern, key)), None)
        if reason is None:
            report.unexpected.append(key)
        else:
            report.dropped[key] = reason


def _fill(rule: Rule, tensor: Tensor, state: Mapping[str, Tensor], report: Report) -> None:
    parts = rule.change.apply(tensor)
    expected, got = [tuple(state[target].shape) for target in rule.targets], [tuple(part.shape) for part in parts]
    if got != expected:
        raise InputError(
            f"key '{rule.source}': got the shape {tuple(tensor.shape)}, which gives {' and '.join(map(str, got))}, "
            f"expected {' and '.join(map(str, expected))} for {', '.join(rule.targets)}; the file is damaged, or its "
            "model is of another form"
        )
    with torch.no_grad():
        for target, part in zip(rule.targets, parts, strict=True):
            state[target].copy_(part)
            report.used.append(Placed(rule.source, target, tuple(part.shape), rule.change.text))
