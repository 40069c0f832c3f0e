"""The one error that a user's own input can raise: a sentence saying what came, what was expected and what to do."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

_OF_OTHER_FORMS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError
)  # fmt: skip


class InputError(ValueError):
    """What the user gave cannot be used; the message is one sentence: got, expected, remedy."""


def nearest(got: str, known: Iterable[str]) -> str:
    """Ask whether the nearest of known names was meant; return nothing where none is near."""
    near = get_close_matches(got, sorted(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


def unknown_name(kind: str, got: str, known: Iterable[str]) -> InputError:
    """Return the error for an unknown name of a kind, such as ``"corpus"``; it suggests the nearest known one."""
    names = sorted(known)
    return InputError(f"Unknown {kind} '{got}'.{nearest(got, names)} Known: {', '.join(names)}.")


@contextmanager
def explained(place: object, remedy: str) -> Iterator[None]:
    """Raise an InputError for what Python raises while a file of another form than ours is read."""
    try:
        yield
    except InputError:
        raise
    except _OF_OTHER_FORMS as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(f"{place}: cannot be read ({reason}); {remedy}") from None
