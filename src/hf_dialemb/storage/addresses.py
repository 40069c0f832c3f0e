"""Files at addresses that fsspec opens, such as ``s3://bucket/calls.jsonl``, and their copies on
this machine.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from ..errors import InputError
from .files import working_folder


def path_or_address(text: str) -> Path | str:
    """Return an address as it is, and anything else as a `Path`."""
    return text if "://" in text else Path(text)


def without_login(address: Path | str) -> str:
    """Return an address without the user name and the password that it may hold, for messages."""
    return re.sub(r"(?<=://)[^/]*@", "", str(address))


@contextmanager
def copied_here(source: Path | str) -> Iterator[Path]:
    """Yield a path as it is; of a file at an address yield a copy, and delete it afterwards."""
    if isinstance(source, Path):
        yield source
        return
    address = Address(source)
    with working_folder(address.place.parent) as folder:
        copy = folder / address.place.name
        with address.explained("read"):
            address.system.get_file(address.path, str(copy))
        try:
            yield copy
        except InputError as error:
            raise InputError(str(error).replace(str(copy), without_login(source))) from None


class Address:
    """A file at an address, and the place on this machine, always the same, where it may be made
    ready.
    """

    def __init__(self, url: str) -> None:
        """Open the file system; refuse an unknown one, or one whose package is missing."""
        from huggingface_hub import constants

        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise InputError(
                f"{without_login(url)}: the package fsspec is missing; pip install "
                '"hf-dialemb[addresses]"'
            ) from None

        self.url = without_login(url)
        with self.explained("opened"):
            self.system, self.path = url_to_fs(url)
        name = PurePosixPath(urlsplit(self.path).path if "://" in self.path else self.path).name
        digest = hashlib.sha256(url.encode()).hexdigest()[:16]
        self.place = Path(constants.HF_ASSETS_CACHE, "hf_dialemb", "addresses", digest, name)

    @contextmanager
    def explained(
        self, done: str, remedy: str = "check the address, the network and your login"
    ) -> Iterator[None]:
        """Turn the errors of a file system, which may be anything, into a sentence."""
        try:
            yield
        except InputError:
            raise
        except ImportError as error:
            package = getattr(error.__cause__, "name", None) or "what it names"
            raise InputError(
                f"{self.url}: a package is missing ({error}); pip install {package}"
            ) from None
        except Exception as error:
            reason = without_login(" ".join(str(error).split())) or type(error).__name__
            raise InputError(f"{self.url}: cannot be {done} ({reason}); {remedy}") from None

    def put(self) -> None:
        """Move the finished file to the address, where it appears whole."""
        from fsspec import AbstractFileSystem

        target = PurePosixPath(self.path)
        with self.explained(
            "written", f"the file is {self.place}: upload it yourself, or correct the address"
        ):
            if (
                type(self.system).mv is AbstractFileSystem.mv
            ):  # in S3 and on the Hub a file is seen when it is whole
                self.system.put_file(str(self.place), self.path)
            else:
                uploaded = str(target.with_name(f".{target.name}.part"))
                self.system.put_file(str(self.place), uploaded)
                self.system.mv(uploaded, self.path)
        self.place.unlink()
        with suppress(OSError):
            self.place.parent.rmdir()
