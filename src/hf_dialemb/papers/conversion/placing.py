"""From a foreign checkpoint's keys to ours: rules, applied with every shape checked, and an account of every key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ...errors import InputError


@dataclass(frozen=True)
class Placed:
    """A key, here and there, whose values are in the model; what was done to them may be nothing."""

    source: str
    target: str
    shape: tuple[int, ...]
    change: str


@dataclass
class Report:
    """An account of all keys, those of the source and those of the model.

    ``made`` are keys of the model that need no source, ``dropped`` keys of the source that the model has no use for,
    each with the reason; ``missing`` are keys that the source should have and has not, ``unexpected`` those that nobody
    knows.
    """

    kind: str
    source: str
    model_type: str = ""
    used: list[Placed] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yields a line for every key, then the sums."""
        for placed in self.used:
            change = f" ({placed.change})" if placed.change else ""
            yield f"used        {placed.source} -> {placed.target} {list(placed.shape)}{change}"
        for key, reason in self.made.items():
            yield f"made        {key}: {reason}"
        for key, reason in self.dropped.items():
            yield f"dropped     {key}: {reason}"
        for name, keys in (("missing", self.missing), ("unexpected", self.unexpected)):
            for key in keys:
                yield f"{name:<11} {key}"
        yield from self.notes
        yield (
            f"{self.model_type}: {len({placed.source for placed in self.used})} keys used, {len(self.made)} made, "
            f"{len(self.dropped)} dropped, {len(self.missing)} missing, {len(self.unexpected)} unexpected"
        )


@dataclass(frozen=True)
class Change:
    """What is done to a tensor before it is placed, so that there is one for each target."""

    text: str
    apply: Callable[[Tensor], Sequence[Tensor]]


AS_IT_IS = Change("", lambda tensor: (tensor,))
TRANSPOSED = Change("transposed", lambda tensor: (tensor.transpose(0, -1),))
IN_THREE = Change("a third: query, key, value", lambda tensor: tensor.chunk(3))
TRANSPOSED_IN_THREE = Change("transposed, a third: query, key, value", lambda tensor: tensor.transpose(0, -1).chunk(3))
REVERSED = Change("rows reversed", lambda tensor: (tensor.flip(0),))


@dataclass(frozen=True)
class Rule:
    """Where a key goes: its names in the model, one for each tensor that the change makes."""

    source: str
    targets: tuple[str, ...]
    change: Change = AS_IT_IS


Reasons = Sequence[tuple[str, str]]  # a pattern that whole keys match, and why they are dropped; the first counts


def place(
    tensors: Mapping[str, Any], rules: Iterable[Rule], state: Mapping[str, Tensor], reasons: Reasons, report: Report
) -> None:
    """Copies tensors into a model, and tells the report of every key."""
    rules = list(rules)
    for rule in rules:
        if rule.source in tensors:
            _place_one(rule, tensors[rule.source], state, report)
    filled = {placed.target for placed in report.used} | report.made.keys()
    report.missing += [target for target in state if target not in filled]
    known = {rule.source for rule in rules}
    for key in (key for key in tensors if key not in known):
        reason = next((reason for pattern, reason in reasons if re.fullmatch(pattern, key)), None)
        if reason is None:
            report.unexpected.append(key)
        else:
            report.dropped[key] = reason


def _place_one(rule: Rule, value: Any, state: Mapping[str, Tensor], report: Report) -> None:  # noqa: ANN401
    tensor = value if isinstance(value, Tensor) else torch.tensor(value)
    parts = rule.change.apply(tensor)
    expected = [tuple(state[target].shape) for target in rule.targets]
    got = [tuple(part.shape) for part in parts]
    if got != expected:
        change = f" ({rule.change.text})" if rule.change.text else ""
        raise InputError(
            f"key '{rule.source}': got the shape {tuple(tensor.shape)}, which gives {' and '.join(map(str, got))}"
            f"{change}; expected {' and '.join(map(str, expected))} for {', '.join(rule.targets)}; the file is "
            "damaged, or its model is of another form"
        )
    with torch.no_grad():
        for target, part in zip(rule.targets, parts, strict=True):
            state[target].copy_(part)
            report.used.append(Placed(rule.source, target, tuple(part.shape), rule.change.text))


def size_of(tensors: Mapping[str, Any], key: str, kind: str) -> tuple[int, ...]:
    """Returns the shape of a table that the model's sizes are read from."""
    if key not in tensors:
        some = ", ".join(sorted(tensors)[:3]) or "none"
        raise InputError(
            f"got {len(tensors)} keys ({some}, ...), expected the key '{key}' of {kind}; "
            "choose another --from, or fetch the checkpoint again"
        )
    shape = tuple(tensors[key].shape)
    if len(shape) != 2:
        raise InputError(f"key '{key}': got the shape {shape}, expected two dimensions; fetch the checkpoint again")
    return shape
