"""Convert PLATO and dial2vec's own checkpoints from every released form, against a plain
restatement."""

import collections
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import reference_models as plain
import torch
import yaml
from transformers import AutoModel, AutoTokenizer

from hf_dialemb import Dialogue, InputError, Turn, register
from hf_dialemb.methods.encoding import encode
from hf_dialemb.papers.convert import convert

WITH_VOCABULARY = ["binary, folder", "torch, vocabulary beside", "torch, folder"]
FORMS = ["torch", "torch before 1.6", "binary", "binary, folder"]


def converted(source: Path, output: Path, vocabulary: Path | None = None) -> list[str]:
    lines: list[str] = []
    convert(source, output, vocabulary=vocabulary, report=lines.append)
    return lines


def load(folder: Path):
    register()
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def report_of(folder: Path) -> dict:
    return json.loads((folder / "conversion.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def vocabulary(tiny_bert) -> Path:
    return Path(tiny_bert) / "vocab.txt"


@pytest.fixture(scope="module")
def state(vocabulary) -> dict[str, torch.Tensor]:
    return plain.random_state(len(vocabulary.read_text(encoding="utf-8").splitlines()))


@pytest.fixture(scope="module")
def dialogues(sample_dialogues) -> list[Dialogue]:
    # more than are read
    turns = [turn for dialogue in sample_dialogues[:6] for turn in dialogue.turns][:18]
    alone = Dialogue((Turn("assistant", "Hello there!"),))
    return [*sample_dialogues[:3], Dialogue((*turns, Turn("user", "bye"))), alone]


@pytest.fixture(scope="module")
def write(state, vocabulary):
    """Return a function that saves PLATO in one of its forms."""

    def write(form: str, folder: Path) -> Path:
        folder.mkdir(exist_ok=True)
        arrays, file = plain.paddle_arrays(state), folder / "PLATO.pdparams"
        if form.startswith("torch"):
            torch.save(
                state,
                folder / "PLATO.pt",
                _use_new_zipfile_serialization=form != "torch before 1.6",
            )
            if form in WITH_VOCABULARY:
                shutil.copy(vocabulary, folder / "vocab.txt")
            return folder if form == "torch, folder" else folder / "PLATO.pt"
        plain.write_paddle(file, arrays)
        if form == "binary":
            return file
        (folder / "Bert").mkdir()
        shutil.copy(vocabulary, folder / "Bert/vocab.txt")
        return folder

    return write


@pytest.fixture(scope="module")
def checkpoint(write, vocabulary, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("plato")
    converted(write("binary", folder), folder / "out", vocabulary)
    return folder / "out"


@pytest.fixture
def refusal(vocabulary, tmp_path):
    """Return why a conversion is refused; it must leave nothing behind."""

    def refusal(source: Path, words: Path | None = vocabulary) -> str:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(InputError) as error:
            converted(source, tmp_path / "refused", words)
        assert sorted(tmp_path.rglob("*")) == before
        assert "\n" not in str(error.value)
        return str(error.value)

    return refusal


def test_dialogues_embed_as_the_plain_restatement_does(checkpoint, state, dialogues):
    model, tokenizer = load(checkpoint)
    words = AutoTokenizer.from_pretrained(checkpoint)
    ours = encode(model, tokenizer, dialogues)
    for vector, dialogue in zip(ours, dialogues, strict=True):
        expected = plain.embed(
            state, dialogue, lambda text: words(text, add_special_tokens=False)["input_ids"]
        )
        assert np.abs(vector - expected).max() < 1e-5 * max(1, np.abs(expected).max())
    messages = [dialogue.to_messages() for dialogue in dialogues]
    batch = tokenizer.apply_chat_template(
        messages, return_dict=True, return_tensors="pt", padding=True
    )
    with torch.inference_mode():
        rendered = model(**batch).pooler_output.numpy()
    assert np.abs(rendered - ours).max() < 1e-5


@pytest.mark.parametrize("form", [*FORMS, *WITH_VOCABULARY[1:]])
def test_all_forms_give_the_same_checkpoint(form, checkpoint, write, vocabulary, tmp_path):
    source = write(form, tmp_path / "in")
    lines = converted(source, tmp_path / "out", None if form in WITH_VOCABULARY else vocabulary)
    for file in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "out" / file).read_bytes() == (checkpoint / file).read_bytes()
    assert lines[-1].startswith("dialemb-dial2vec: 30 keys used, 2 made")


def test_layout_is_that_of_the_recipe_and_the_report_names_every_key(checkpoint, state):
    model, _ = load(checkpoint)
    types = state["embedder.type_embedding.weight"]
    assert torch.equal(
        model.role_embeddings.weight, types[[1, 0]]
    )  # ours begins with the user, theirs with the bot
    file = Path(__file__).parents[2] / "training_scripts/recipes/dial2vec_plato.yaml"
    recipe = yaml.safe_load(file.read_text(encoding="utf-8"))
    for name in ("wrapped", "position_layout", "turn_order", "max_turns", "end_of_utterance"):
        assert getattr(model.config, name) == recipe[name]
    report = report_of(checkpoint)
    assert {placed["source"] for placed in report["used"]} | set(report["dropped"]) == set(
        plain.paddle_arrays(state)
    )
    targets = [placed["target"] for placed in report["used"]]
    assert sorted([*targets, *report["made"]]) == sorted(load(checkpoint)[0].state_dict())
    assert all(report["dropped"].values())


def test_dial2vecs_own_checkpoint_is_plato_under_a_prefix(
    checkpoint, state, vocabulary, dialogues, tmp_path
):
    source, pooler = tmp_path / "plato.sgd.best_model.pkl", {"pooler.dense.bias": torch.zeros(2)}
    kept = {f"bert.{name}": value for name, value in {**state, **pooler}.items()}
    torch.save(collections.OrderedDict(kept), source)
    converted(source, tmp_path / "out", vocabulary)
    assert np.array_equal(
        encode(*load(tmp_path / "out"), dialogues), encode(*load(checkpoint), dialogues)
    )
    dropped = set(report_of(tmp_path / "out")["dropped"])
    assert {"bert.pooler.dense.bias", "bert.mask_embed", "bert.discriminator.0.bias"} <= dropped


def test_vocabularies_that_do_not_fit_are_refused(write, vocabulary, tmp_path, refusal):
    source = write("torch", tmp_path)
    lines = vocabulary.read_text(encoding="utf-8").splitlines()
    (tmp_path / "short.txt").write_text("\n".join(lines[:-1]), encoding="utf-8")
    (tmp_path / "other.txt").write_text(
        "\n".join("brandnew" if line == "[unused1]" else line for line in lines)
    )
    for words, text in (
        (None, "--vocab"),
        (tmp_path / "none.txt", "no such file"),
        (tmp_path / "short.txt", f"got {len(lines) - 1} tokens, expected {len(lines)}"),
        (tmp_path / "other.txt", "end_of_utterance: '[unused1]'"),
    ):
        assert text in refusal(source, words)


@pytest.mark.parametrize("form", FORMS[:-1])
def test_a_file_that_is_cut_off_is_refused(form, write, tmp_path, refusal):
    source = write(form, tmp_path)
    whole = source.read_bytes()
    for share in (0.999, 0.5, 0.001):
        source.write_bytes(whole[: int(len(whole) * share)])
        assert any(word in refusal(source) for word in ("damaged", "cut off")), share


def test_other_keys_are_refused(tiny_bert, state, tmp_path, refusal):
    bert = AutoModel.from_pretrained(tiny_bert).state_dict()
    path = tmp_path / "PLATO.pt"
    for content, text in (
        (bert, "expected the key 'embedder.token_embedding.weight' of PLATO"),
        ({f"bert.{key}": bert[key] for key in bert}, "got the backbone BERT, expected PLATO"),
        ([torch.zeros(2)], "got list under"),
        ({"epoch": 3}, "got int under 'epoch', expected a tensor"),
        (
            {**state, "layers.1.adapter.weight": torch.zeros(2)},
            "1 unexpected (layers.1.adapter.weight)",
        ),
        (
            {key: state[key] for key in state if key != "layers.1.ff_norm.bias"},
            "1 missing (encoder.encoder.layer.1.output.LayerNorm.bias)",
        ),
        (
            {**state, "layers.0.ff.linear_out.bias": torch.zeros(127)},
            "key 'layers.0.ff.linear_out.bias': got the shape (127,), which gives (127,), expected",
        ),
        (
            {**state, "embedder.turn_embedding.weight": torch.zeros(16)},
            "got the shape (16,), expected two dimensions",
        ),
    ):
        torch.save(content, path)
        assert text in refusal(path)
    path.write_text("hello")
    assert "of another kind" in refusal(path)


class Calls:
    """Pickles as a call."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("older", [False, True])
def test_no_file_runs_anything(older, state, tmp_path, refusal):
    trace = tmp_path / "trace"
    torch.save(
        {**state, "extra": Calls(open, str(trace), "w")},
        tmp_path / "PLATO.pt",
        _use_new_zipfile_serialization=not older,
    )
    assert "do not trust the file" in refusal(tmp_path / "PLATO.pt")
    assert not trace.exists()


def test_the_input_is_one_file_of_weights_and_the_output_is_new(write, tmp_path, refusal):
    source = write("torch", tmp_path / "in")
    assert "no such file" in refusal(tmp_path / "nothing")
    (tmp_path / "in/PLATO.pdparams").write_bytes(b"")
    assert "got 2 files of weights (PLATO.pdparams, PLATO.pt)" in refusal(tmp_path / "in")
    (tmp_path / "refused").mkdir()
    assert "exists already" in refusal(source)


def test_the_command_prints_the_fate_of_every_key(write, vocabulary, tmp_path, printed):
    words = [
        "papers",
        "convert",
        write("torch", tmp_path),
        "--vocab",
        vocabulary,
        "--output",
        tmp_path / "out",
    ]
    *lines, last = printed(*words).splitlines()
    assert (
        "used        embedder.type_embedding.weight -> role_embeddings.weight [2, 128] (rows "
        "reversed)" in lines
    )
    assert any(line.startswith("dropped     latent_embeddings: ") for line in lines)
    assert last == f"Wrote {tmp_path / 'out'}"
