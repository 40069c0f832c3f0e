"""The command line, for tests that are skipped where the library stands alone."""

from importlib.util import find_spec

import pytest

applications = pytest.mark.skipif(
    find_spec("hf_dialemb.apps") is None, reason="the applications are not installed"
)


def main(words: list[str]) -> int:
    """Run the command line as `hf_dialemb.apps.cli.main` does."""
    return pytest.importorskip("hf_dialemb.apps.cli").main(words)
