"""From a foreign checkpoint's keys to ours: rules, applied with every shape checked and every key accounted for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...models.errors import InputError
from .report import Placed, Report


@dataclass(frozen=True)
class Change:
    """What is done to a tensor before it is placed.

    Attributes:
        text: How the report names it.
        apply: From one tensor to one for each target.
    """

    text: str
    apply: Callable[[Tensor], Sequence[Tensor]]


AS_IT_IS = Change("", lambda tensor: (tensor,))
TRANSPOSED = Change("transposed", lambda tensor: (tensor.transpose(0, -1),))
IN_THREE = Change("a third: query, key, value", lambda tensor: tensor.chunk(3))
TRANSPOSED_IN_THREE = Change("transposed, a third: query, key, value", lambda tensor: tensor.transpose(0, -1).chunk(3))
REVERSED = Change("rows reversed", lambda tensor: (tensor.flip(0),))
AS_ROW = Change("as a row", lambda tensor: (tensor.unsqueeze(0),))


@dataclass(frozen=True)
class Rule:
    """Where a key goes.

    Attributes:
        source: Its name in the foreign checkpoint.
        targets: Its names in the model, one for each tensor that ``change`` makes.
        change: What is done to it.
    """

    source: str
    targets: tuple[str, ...]
    change: Change = AS_IT_IS


Reasons = Sequence[tuple[str, str]]
"""Pattern that a whole key matches, and why such keys are dropped; the first that matches counts."""


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
    for key in tensors:
        if key in known:
            continue
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
        raise InputError(
            f"key '{rule.source}': got the shape {tuple(tensor.shape)}, which gives "
            f"{' and '.join(map(str, got))}{f' ({rule.change.text})' if rule.change.text else ''}; expected "
            f"{' and '.join(map(str, expected))} for {', '.join(rule.targets)}; "
            "the file is damaged, or its model is of another form"
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
