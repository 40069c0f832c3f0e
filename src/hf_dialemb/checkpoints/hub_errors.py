"""Errors of the Hub's client as one sentence with a remedy."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from ..errors import InputError

_REMEDIES = {
    401: "run 'hf auth login' with a token that may write, or correct HF_TOKEN",
    403: "ask the owner for the right to write, or take a token that may write",
    404: "correct the name of the repository, its type or the revision",
    413: "split the file that is too large",
}
_AGAIN = "run the same command again"
_PASSING = (408, 409, 412, 429)


@contextmanager
def hub_errors(repo_id: str) -> Iterator[None]:
    """Turn whatever the Hub's client raises into one sentence with a remedy."""
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
        reason = " ".join(str(getattr(cause, "server_message", None) or cause or type(cause).__name__).split())
        if not isinstance(cause, HfHubHTTPError):
            reason = f"the Hub at {constants.ENDPOINT} cannot be reached or broke off ({reason})"
            raise ConnectionError(errno.EIO, f"{reason}: check the network and {_AGAIN}", repo_id) from None
        status = cause.response.status_code
        sentence = f"the Hub answers HTTP {status} ({reason}): {_REMEDIES.get(status, _AGAIN)}"
        if status >= 500 or status in _PASSING:
            raise ConnectionError(errno.EIO, sentence, repo_id) from None
        raise InputError(f"{repo_id}: {sentence}") from None
