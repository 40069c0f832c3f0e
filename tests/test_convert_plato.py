"""PLATO and dial2vec's own checkpoints, in every form they come in, against a plain restatement."""

from __future__ import annotations

import collections
import io
import json
import pickle
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import plato_reference as plain
import pytest
import torch
import yaml
from transformers import AutoModel, AutoTokenizer

from hf_dialemb.cli import convert as command
from hf_dialemb.cli.parser import Parser
from hf_dialemb.hub.conversion.assembly import Request
from hf_dialemb.hub.conversion.convert import KINDS, convert
from hf_dialemb.models import register
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.encoder import encode
from hf_dialemb.models.errors import InputError

RECIPE = Path(__file__).parents[1] / "training_scripts/recipes/dial2vec_plato.yaml"


@pytest.fixture(scope="module")
def vocabulary(tiny_bert) -> Path:
    return Path(tiny_bert) / "vocab.txt"


@pytest.fixture(scope="module")
def state(vocabulary) -> dict[str, torch.Tensor]:
    return plain.random_state(len(vocabulary.read_text(encoding="utf-8").splitlines()))


@pytest.fixture(scope="module")
def dialogues(sample_dialogues) -> list[Dialogue]:
    few = list(sample_dialogues[:3])
    turns = [turn for dialogue in sample_dialogues[:6] for turn in dialogue.turns][:18]  # more than are read
    return [*few, Dialogue((*turns, Turn("user", "bye"))), Dialogue((Turn("assistant", "Hello there!"),))]


def write(form: str, folder: Path, state: dict[str, torch.Tensor], vocabulary: Path) -> Path:
    """Saves PLATO as one of its programs does, with the vocabulary where the program has it."""
    folder.mkdir(exist_ok=True)
    arrays = plain.paddle_arrays(state)
    if form in ("torch", "torch before 1.6"):
        torch.save(state, folder / "PLATO.pt", _use_new_zipfile_serialization=form == "torch")
        return folder / "PLATO.pt"
    if form.startswith("pickle"):
        protocol = int(form[-1])
        named = {**arrays, "StructuredToParameterName@@": {}}
        (folder / "PLATO.pdparams").write_bytes(pickle.dumps(named, protocol=protocol))
    else:
        plain.write_paddle(folder / "PLATO.pdparams", arrays, packed=form == "binary, packed")
    if form != "archive":
        return folder / "PLATO.pdparams"
    with tarfile.open(folder / "model.tar.gz", "w:gz") as archive:
        archive.add(vocabulary, "model/Bert/vocab.txt")
        archive.add(folder / "PLATO.pdparams", "model/PLATO.pdparams")
    return folder / "model.tar.gz"


def converted(kind: str, source: Path, output: Path, vocabulary: Path | None = None, **options) -> list[str]:
    return list(convert(Request(kind, str(source), vocabulary), output, **options))


def load(folder: Path):
    register()
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


FORMS = ["torch", "torch before 1.6", "binary", "binary, packed", "pickle 2", "pickle 4", "archive"]


@pytest.fixture(scope="module")
def checkpoint(state, vocabulary, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("plato")
    converted("plato", write("binary", folder, state, vocabulary), folder / "out", vocabulary)
    return folder / "out"


def test_dialogues_embed_as_the_plain_restatement_does(checkpoint, state, dialogues):
    model, tokenizer = load(checkpoint)
    words = AutoTokenizer.from_pretrained(checkpoint)
    ours = encode(model, tokenizer, dialogues)
    for vector, dialogue in zip(ours, dialogues, strict=True):
        expected = plain.embed(state, dialogue, lambda text: words(text, add_special_tokens=False)["input_ids"])
        assert np.abs(vector - expected).max() < 1e-5 * max(1, np.abs(expected).max())
    messages = [[{"role": turn.role, "content": turn.content} for turn in dialogue.turns] for dialogue in dialogues]
    batch = tokenizer.apply_chat_template(messages, return_dict=True, return_tensors="pt", padding=True)
    with torch.inference_mode():
        rendered = model(**batch).pooler_output.numpy()
    assert np.abs(rendered - ours).max() < 1e-5


def test_token_vectors_are_those_of_the_plain_restatement(checkpoint, state):
    model, _ = load(checkpoint)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1, 60, (2, 12), generator=generator)
    lengths = torch.tensor([[12], [7]])
    mask = (torch.arange(12) < lengths).long()
    turns = torch.arange(12).div(3, rounding_mode="floor").expand(2, 12) * mask
    roles = turns % 2 * mask
    last = turns.amax(-1, keepdim=True)
    with torch.inference_mode():
        ours = model.encode_tokens(ids, mask, roles, turns).last_hidden_state
    theirs = plain.forward(state, ids, mask.float(), torch.arange(12).expand(2, 12) % 3, 1 - roles, last + 1 - turns)
    assert (ours - theirs)[mask.bool()].abs().max() < 1e-5


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_give_the_same_checkpoint(form, checkpoint, state, vocabulary, tmp_path):
    source = write(form, tmp_path / "in", state, vocabulary)
    lines = converted("plato", source, tmp_path / "out", None if form == "archive" else vocabulary)
    expected, got = load(checkpoint)[0].state_dict(), load(tmp_path / "out")[0].state_dict()
    assert expected.keys() == got.keys()
    assert all(torch.equal(expected[name], got[name]) for name in expected)
    assert lines[-1].startswith("dialemb-dial2vec: 30 keys used, 2 made")
    assert lines[-1].endswith("0 missing, 0 unexpected")


def test_roles_layout_and_objective_are_those_of_the_recipe(checkpoint, state):
    model, _ = load(checkpoint)
    config = model.config
    types = state["embedder.type_embedding.weight"]
    assert torch.equal(model.role_embeddings.weight, types[[1, 0]])  # ours begins with the user, theirs with the bot
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    same = set(recipe) & set(vars(config)) - {"frozen_layers"}
    assert {"wrapped", "position_layout", "turn_order", "max_turns", "end_of_utterance", "window"} <= same
    assert {name: getattr(config, name) for name in same} == {name: recipe[name] for name in same}
    backbone = config.encoder_config
    assert (backbone.layer_norm_eps, backbone.hidden_act, backbone.type_vocab_size) == (1e-6, "gelu", 1)


def test_the_report_names_every_key_once(checkpoint, state):
    report = json.loads((checkpoint / "conversion.json").read_text(encoding="utf-8"))
    used = {placed["source"] for placed in report["used"]}
    assert used | set(report["dropped"]) == set(plain.paddle_arrays(state))
    targets = [placed["target"] for placed in report["used"]]
    assert len(targets) == len(set(targets))
    assert set(targets) | set(report["made"]) == set(load(checkpoint)[0].state_dict())
    assert (report["missing"], report["unexpected"]) == ([], [])
    assert all(reason for reason in report["dropped"].values())
    dropped = {key.removeprefix(plain.PADDLE).strip("./").split("/")[0] for key in report["dropped"]}
    assert dropped == {
        "sequence_mask", "mask_embed", "latent_embeddings", "post_network", "discriminator", "bow_predictor",
    }  # fmt: skip


def dial2vec_state(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    width = state["embed_layer_norm.weight"].shape[0]
    kept = {name: value for name, value in state.items() if not name.startswith(("post_network", "bow_predictor"))}
    kept["pooler.dense.weight"], kept["pooler.dense.bias"] = torch.randn(width, width), torch.randn(width)
    return {f"bert.{name}": value for name, value in kept.items()}


def test_dial2vecs_own_checkpoint_is_plato_under_a_prefix(checkpoint, state, vocabulary, dialogues, tmp_path):
    torch.save(collections.OrderedDict(dial2vec_state(state)), tmp_path / "plato.sgd.0.2t.10ws.best_model.pkl")
    converted("dial2vec", tmp_path / "plato.sgd.0.2t.10ws.best_model.pkl", tmp_path / "out", vocabulary)
    assert np.array_equal(encode(*load(tmp_path / "out"), dialogues), encode(*load(checkpoint), dialogues))
    report = json.loads((tmp_path / "out/conversion.json").read_text(encoding="utf-8"))
    assert {"bert.pooler.dense.weight", "bert.mask_embed", "bert.discriminator.0.bias"} <= set(report["dropped"])


def test_a_vocabulary_beside_the_weights_is_found(state, vocabulary, tmp_path):
    folder = tmp_path / "in"
    write("torch", folder, state, vocabulary)
    (folder / "vocab.txt").write_bytes(vocabulary.read_bytes())
    converted("plato", folder, tmp_path / "from_folder")
    converted("plato", folder / "PLATO.pt", tmp_path / "from_file")
    tokens = [load(tmp_path / name)[1].get_vocab() for name in ("from_folder", "from_file")]
    assert tokens[0] == tokens[1]


def refusal(source: Path, tmp_path: Path, vocabulary: Path | None = None, kind: str = "plato", **options) -> str:
    """Returns why a conversion is refused; makes sure that it leaves nothing behind."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as error:
        converted(kind, source, tmp_path / "out", vocabulary, **options)
    assert sorted(tmp_path.rglob("*")) == before
    return str(error.value)


def test_missing_and_unexpected_keys_are_refused_unless_partial(state, vocabulary, tmp_path):
    arrays = plain.paddle_arrays(state)
    del arrays[f"{plain.PADDLE}/TransformerBlock_1/LayerNorm_1.b_0"]
    less, more = tmp_path / "PLATO.pdparams", tmp_path / "PLATO.pt"
    plain.write_paddle(less, arrays)
    torch.save({**state, "layers.1.adapter.weight": torch.zeros(2)}, more)
    message = refusal(less, tmp_path, vocabulary)
    assert "1 missing (encoder.encoder.layer.1.output.LayerNorm.bias)" in message
    assert "--partial" in message
    assert "1 unexpected (layers.1.adapter.weight)" in refusal(more, tmp_path, vocabulary)
    assert "unexpected  layers.1.adapter.weight" in converted("plato", more, tmp_path / "1", vocabulary, partial=True)
    for name in ("2", "3"):
        converted("plato", less, tmp_path / name, vocabulary, partial=True)
    left, right = (load(tmp_path / name)[0].state_dict() for name in ("2", "3"))
    assert all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("layers.0.attn.linear_qkv.weight", (128, 384), ("(128, 384)", "(128, 128)")),
        ("layers.0.ff.linear_out.bias", (127,), ("(127,)", "(128,)")),
        ("embedder.type_embedding.weight", (3, 128), ("(3, 128)", "(2, 128)")),
        ("embedder.turn_embedding.weight", (16,), ("(16,)", "two dimensions")),
        ("embed_layer_norm.weight", (), ("()", "(128,)")),
    ],
)
@pytest.mark.parametrize("partial", [False, True])
def test_a_wrong_shape_is_always_refused(name, shape, words, partial, state, vocabulary, tmp_path):
    torch.save({**state, name: torch.zeros(shape)}, tmp_path / "PLATO.pt")
    message = refusal(tmp_path / "PLATO.pt", tmp_path, vocabulary, partial=partial)
    assert f"key '{name}'" in message
    assert all(word in message for word in ("got", "expected", *words))


def test_vocabularies_that_do_not_fit_are_refused(state, vocabulary, tmp_path):
    source = write("torch", tmp_path, state, vocabulary)
    assert "--vocab" in refusal(source, tmp_path)
    assert "no such file" in refusal(source, tmp_path, tmp_path / "none.txt")
    lines = vocabulary.read_text(encoding="utf-8").splitlines()
    (tmp_path / "short.txt").write_text("\n".join(lines[:-1]), encoding="utf-8")
    assert f"got {len(lines) - 1} tokens, expected {len(lines)}" in refusal(source, tmp_path, tmp_path / "short.txt")
    (tmp_path / "other.txt").write_text("\n".join("brandnew" if line == "[unused1]" else line for line in lines))
    assert "end_of_utterance: '[unused1]'" in refusal(source, tmp_path, tmp_path / "other.txt")


def test_what_is_cut_off_is_refused(state, vocabulary, tmp_path):
    for form in FORMS:
        source = write(form, tmp_path, state, vocabulary)
        whole = source.read_bytes()
        for share in (0.999, 0.5, 0.001):
            source.write_bytes(whole[: int(len(whole) * share)])
            message = refusal(source, tmp_path, vocabulary)
            assert any(word in message for word in ("damaged", "cut off")), (form, share, message)
        for path in tmp_path.iterdir():
            path.unlink()


def test_another_kind_is_told(tiny_bert, state, vocabulary, tmp_path):
    bert = AutoModel.from_pretrained(tiny_bert).state_dict()
    path = tmp_path / "PLATO.pt"
    for kind, content, sentence in (
        ("dial2vec", state, "'bert.embedder.token_embedding.weight'"),
        ("plato", bert, "expected the key 'embedder.token_embedding.weight' of PLATO; choose another --from"),
        ("dial2vec", {f"bert.{key}": bert[key] for key in bert}, "got the backbone BERT, expected PLATO"),
        ("plato", [torch.zeros(2)], "got list, expected tensors by name"),
        ("plato", {"epoch": 3}, "got int under 'epoch', expected a tensor"),
    ):
        torch.save(content, path)
        assert sentence in refusal(path, tmp_path, vocabulary, kind)
    path.write_text("hello")
    assert "of another kind" in refusal(path, tmp_path, vocabulary)
    assert "no such file" in refusal(tmp_path / "nothing", tmp_path, vocabulary)


def test_a_folder_or_archive_holds_one_file_of_weights(state, vocabulary, tmp_path):
    folder = tmp_path / "in"
    write("torch", folder, state, vocabulary)
    (folder / "PLATO.pdparams").write_bytes(b"")
    assert "got 2 files of weights (PLATO.pdparams, PLATO.pt)" in refusal(folder, tmp_path, vocabulary)
    with tarfile.open(tmp_path / "empty.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("model/readme"), io.BytesIO())
    assert "got 0 members of weights (none)" in refusal(tmp_path / "empty.tar.gz", tmp_path, vocabulary)


def test_what_exists_is_never_overwritten(state, vocabulary, tmp_path):
    source = write("torch", tmp_path, state, vocabulary)
    (tmp_path / "out").mkdir()
    assert "exists already" in refusal(source, tmp_path, vocabulary)
    with pytest.raises(InputError, match="got dse, expected dial2vec"):
        list(convert(Request("plato", str(source), vocabulary, "dse"), tmp_path / "new"))


LOAD = """
import sys
import hf_dialemb
from transformers import AutoModel, AutoTokenizer
model, tokenizer = AutoModel.from_pretrained(sys.argv[1]), AutoTokenizer.from_pretrained(sys.argv[1])
messages = [{"role": "user", "content": "a room"}, {"role": "assistant", "content": "which day?"}]
batch = tokenizer.apply_chat_template([messages], return_dict=True, return_tensors="pt")
assert model(**batch).pooler_output.shape == (1, 128)
"""


def dialemb(*words: object) -> None:
    parser = Parser(prog="dialemb")
    command.add(parser.add_subparsers(parser_class=Parser))
    options = parser.parse_args(["convert", *map(str, words)])
    options.run(options)


@pytest.mark.slow
def test_importing_the_package_is_enough_to_load_what_the_command_writes(state, vocabulary, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["--input", write("torch", tmp_path, state, vocabulary), "--vocab", vocabulary, "--output", out]
    dialemb("--from", "plato", *words)
    printed = capsys.readouterr().out.splitlines()
    assert "used        embedder.type_embedding.weight -> role_embeddings.weight [2, 128] (rows reversed)" in printed
    assert any(line.startswith("dropped     latent_embeddings: ") for line in printed)
    assert any(line.startswith("made        center: zeros") for line in printed)
    assert printed[-1] == f"Wrote {out}"
    assert {path.name for path in out.iterdir()} == {
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
        "conversion.json",
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", LOAD, str(out)], check=True)


def test_the_command_names_its_kinds_and_tells_another_in_one_sentence(state, vocabulary, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["--input", write("torch", tmp_path, state, vocabulary), "--vocab", vocabulary, "--output", out]
    for kind, message in (
        ("dial2vec", "choose another --from"), ("transformers", "PLATO.pt"), ("plto", "Did you mean 'plato'"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message) as error:
            dialemb("--from", kind, *words)
        assert "\n" not in str(error.value)
        assert capsys.readouterr().out == ""
        assert not out.exists()
    with pytest.raises(SystemExit):
        dialemb("--help")
    text = capsys.readouterr().out
    assert all(f"  {kind} " in text for kind in KINDS)
