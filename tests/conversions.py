"""What a conversion writes, what it gives, and why it is refused."""

import json
from pathlib import Path

import pytest
from transformers import AutoModel, AutoTokenizer

from hf_dialemb.errors import InputError
from hf_dialemb.methods import register
from hf_dialemb.papers.conversion.convert import Request, convert


def converted(kind: str, source: Path | str, output: Path, vocabulary=None, method=None, partial=False) -> list[str]:
    return list(convert(Request(kind, str(source), vocabulary, method), output, partial))


def load(folder: Path):
    register()
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def report_of(folder: Path) -> dict:
    return json.loads((folder / "conversion.json").read_text(encoding="utf-8"))


def refusal(kind: str, source: Path | str, tmp_path: Path, *words, **options) -> str:
    """Returns why a conversion is refused; makes sure that it leaves nothing behind."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as error:
        converted(kind, source, tmp_path / "refused", *words, **options)
    assert sorted(tmp_path.rglob("*")) == before
    assert "\n" not in str(error.value)
    return str(error.value)
