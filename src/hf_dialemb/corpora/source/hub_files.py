"""The original files of a corpus from a dataset repository on the Hugging Face Hub."""

from collections.abc import Iterable
from pathlib import Path

from ...errors import InputError

PREFIX = "hf://datasets/"  # what a data folder on the Hub begins with


def download(address: str, patterns: Iterable[str]) -> Path:
    """Brings the files of a corpus into the Hub's cache, or finds them there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    repository, _, revision = address.removeprefix(PREFIX).partition("@")
    wanted = [f"*{pattern}{suffix}" for pattern in patterns for suffix in ("", ".gz")]
    try:
        return Path(
            snapshot_download(repository, repo_type="dataset", revision=revision or None, allow_patterns=wanted)
        )
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{address}: the Hub does not give it ({reason}); check the address, the network and your login, "
            "or download the files and give their folder"
        ) from None
