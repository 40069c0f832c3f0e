"""The one error that a user's own input can raise: a sentence saying what came, what was expected and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """What the user gave cannot be used; the message is one sentence: got, expected, remedy."""


def unknown_name(kind: str, got: str, known: Iterable[str]) -> InputError:
    """Makes the error for an unknown name of a kind, such as ``"corpus"``; it suggests the nearest known one."""
    names = sorted(known)
    near = get_close_matches(got, names, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return InputError(f"Unknown {kind} '{got}'.{hint} Known: {', '.join(names)}.")
