"""``dialemb convert`` as it is typed, and what it writes as strangers load it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import plato_reference as plain
import pytest
import torch

from hf_dialemb.cli import convert as command
from hf_dialemb.cli.parser import Parser
from hf_dialemb.models.errors import InputError


def dialemb(*words: str) -> None:
    parser = Parser(prog="dialemb")
    command.add(parser.add_subparsers(parser_class=Parser))
    options = parser.parse_args(["convert", *words])
    options.run(options)


@pytest.fixture
def plato(tiny_bert, tmp_path) -> list[str]:
    vocabulary = Path(tiny_bert) / "vocab.txt"
    words = len(vocabulary.read_text(encoding="utf-8").splitlines())
    torch.save(plain.random_state(words, layers=1), tmp_path / "PLATO.pt")
    return ["--input", str(tmp_path / "PLATO.pt"), "--vocab", str(vocabulary), "--output", str(tmp_path / "out")]


LOAD = """
import sys
import hf_dialemb
from transformers import AutoModel, AutoTokenizer
model, tokenizer = AutoModel.from_pretrained(sys.argv[1]), AutoTokenizer.from_pretrained(sys.argv[1])
messages = [{"role": "user", "content": "a room"}, {"role": "assistant", "content": "which day?"}]
batch = tokenizer.apply_chat_template([messages], return_dict=True, return_tensors="pt")
assert model(**batch).pooler_output.shape == (1, 128)
"""


@pytest.mark.slow
def test_importing_the_package_is_enough_to_load_what_it_writes(plato, tmp_path, capsys):
    dialemb("--from", "plato", *plato)
    printed = capsys.readouterr().out.splitlines()
    assert "used        embedder.type_embedding.weight -> role_embeddings.weight [2, 128] (rows reversed)" in printed
    assert any(line.startswith("dropped     latent_embeddings: ") for line in printed)
    assert any(line.startswith("made        center: zeros") for line in printed)
    assert printed[-1] == f"Wrote {tmp_path / 'out'}"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
        "conversion.json",
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", LOAD, str(tmp_path / "out")], check=True)


@pytest.mark.parametrize(
    ("kind", "message"),
    [("dial2vec", "choose another --from"), ("transformers", "PLATO.pt"), ("plto", "Did you mean 'plato'")],
)
def test_another_kind_is_one_sentence(kind, message, plato, tmp_path, capsys):
    with pytest.raises(InputError, match=message) as error:
        dialemb("--from", kind, *plato)
    assert "\n" not in str(error.value)
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "out").exists()


def test_help_says_every_kind(capsys):
    from hf_dialemb.hub.conversion.convert import KINDS

    with pytest.raises(SystemExit):
        dialemb("--help")
    text = capsys.readouterr().out
    assert all(f"  {kind} " in text for kind in KINDS)
