"""The one error that a user's own input can raise, a sentence.

What came, what was expected and what to do.
"""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

_OF_OTHER_FORMS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)
_REMEDIES = {
    401: "run 'hf auth login' with a token that may write, or correct HF_TOKEN",
    403: "ask the owner for the right to write, or take a token that may write",
    404: "correct the name of the repository, its type or the revision",
    413: "split the file that is too large",
}
_AGAIN = "run the same command again"
_PASSING = (408, 409, 412, 429)


class InputError(ValueError):
    """What the user gave cannot be used; the message is one sentence: got, expected, remedy."""


def nearest(got: str, known: Iterable[str]) -> str:
    """Ask whether the nearest of known names was meant; return nothing where none is near."""
    near = get_close_matches(got, sorted(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


def unknown_name(kind: str, got: str, known: Iterable[str]) -> InputError:
    """Return the error for an unknown name of a kind, such as ``"corpus"``.

    It suggests the nearest known one.
    """
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


@contextmanager
def hub_errors(repo_id: str) -> Iterator[None]:
    """Turn whatever the Hub's client raises into one sentence with a remedy."""
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        yield
    except InputError:
        raise
    except OfflineModeIsEnabled:
        raise InputError("HF_HUB_OFFLINE is set; unset it to publish") from None
    except Exception as error:
        cause: BaseException = error
        while not isinstance(cause, HfHubHTTPError) and cause.__cause__ is not None:
            cause = cause.__cause__
        message = getattr(cause, "server_message", None) or cause or type(cause).__name__
        reason = " ".join(str(message).split())
        if not isinstance(cause, HfHubHTTPError):
            sentence = (
                f"the Hub at {constants.ENDPOINT} cannot be reached or broke off ({reason}): check "
                f"the network and {_AGAIN}"
            )
            raise ConnectionError(errno.EIO, sentence, repo_id) from None
        status = cause.response.status_code
        sentence = f"the Hub answers HTTP {status} ({reason}): {_REMEDIES.get(status, _AGAIN)}"
        if status >= 500 or status in _PASSING:
            raise ConnectionError(errno.EIO, sentence, repo_id) from None
        raise InputError(f"{repo_id}: {sentence}") from None
