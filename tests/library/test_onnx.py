"""Write ONNX graphs with the vectors of the model for any batch, and their 8-bit form with its
loss."""

import json

import numpy as np
import pytest
import torch
from checkpoints import save_dse
from exports import close, stock
from safetensors.torch import load_file
from test_model_common import MARKS, WORDS, build

from hf_dialemb.errors import InputError
from hf_dialemb.hub import onnx_form
from hf_dialemb.hub.export import DTYPES, load_checkpoint, tolerance, write_checkpoint
from hf_dialemb.methods import METHODS, get_method
from hf_dialemb.methods.encoding import encode
from hf_dialemb.methods.utterance import UtteranceEncoder, encode_utterances
from hf_dialemb.metrics.vectors import unit

pytestmark = pytest.mark.slow

pytest.importorskip("onnxscript")
onnxruntime = pytest.importorskip("onnxruntime")

GRAPHS = ["dial2vec", "dse", "dual_encoder", "transformer_dual_encoder", "multi_granularity"]
TEXTS = ["i need a hotel", "Hello [SEP] [MASK] [unused3] </s>!", "a taxi, please", "for two nights"]
MESSAGES = [[{"role": "user", "content": text}] for text in TEXTS]


@pytest.fixture(scope="module", params=GRAPHS)
def graph(request, tmp_path_factory):
    """Return a tiny model, its graph, and the line about it."""
    model, folder = build(request.param), tmp_path_factory.mktemp("graphs") / request.param
    folder.mkdir()
    line = onnx_form.write_onnx(folder, model)
    return (
        model,
        onnxruntime.InferenceSession(
            folder / "onnx/model.onnx", providers=["CPUExecutionProvider"]
        ),
        line,
    )


def test_every_model_that_embeds_has_a_graph():
    alike = {
        name for name in METHODS if get_method(name).model_class.forward is UtteranceEncoder.forward
    }
    assert alike == {"dse", "dialog2flow", "dialogue_cse", "turns"}
    rest = set(METHODS) - {*GRAPHS, *alike}
    assert not any(get_method(name).model_class.embeds for name in rest)


def test_a_graph_takes_two_inputs_of_any_size_and_gives_the_embedding(graph):
    model, session, line = graph
    assert [(place.name, place.shape, place.type) for place in session.get_inputs()] == [
        (name, ["batch", "tokens"], "tensor(int64)") for name in ("input_ids", "attention_mask")
    ]
    vectors = [(place.name, place.shape) for place in session.get_outputs()]
    assert vectors == [("sentence_embedding", ["batch", model.config.hidden_size])]
    assert float(line.split()[-1]) <= 1e-5
    assert line.startswith("Verified: ONNX, batches of 1 to 9: largest difference")


@pytest.mark.parametrize(("count", "length"), [(1, 1), (1, 2), (1, 19), (2, 32), (7, 5), (16, 24)])
def test_a_graph_has_the_vectors_of_the_model(graph, count, length):
    model, session, _ = graph
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(WORDS, (count, length), generator=generator)
    ids[:, 0] = MARKS[1]
    ids[-1, 0] = MARKS[-1]
    mask = (
        torch.arange(length) < torch.randint(1, length + 1, (count, 1), generator=generator)
    ).long()
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=mask).pooler_output.numpy()
    (vectors,) = session.run(None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
    assert close(vectors, expected, 1e-5)


@pytest.fixture(scope="module")
def exported(tiny_bert, tmp_path_factory, exporting):
    """Return a checkpoint of DSE, its full export, and the printed lines."""
    source = save_dse(tiny_bert, tmp_path_factory.mktemp("training") / "dse")
    form = ("--dtype", "bf16", "--max-shard-size", "20KB", "--int8")
    return source, *exporting(source, *form)


def test_rounded_weights_in_shards_and_a_graph_in_float32(exported):
    source, folder, lines = exported
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 2
    assert {value.dtype for shard in shards for value in load_file(shard).values()} == {
        torch.bfloat16
    }
    assert (
        lines[0]
        == "Weights in bfloat16: differences up to 1e-01 of the embeddings' largest value pass"
    )
    expected = encode_utterances(*load_checkpoint(str(source)), TEXTS)
    assert close(stock(folder).encode(TEXTS), expected, 1e-1)
    assert close(onnx_form.onnx_vectors(folder, MESSAGES), expected, 1e-5)
    for file in ("model.onnx", "model_int8.onnx"):
        written = (folder / "onnx" / file).read_bytes()
        assert b"stack_trace" not in written  # nor where it was made
        assert b".py" not in written


def test_the_loss_of_8_bits_lies_beside_the_graph(exported):
    _, folder, lines = exported
    record = json.loads((folder / "onnx" / "quantisation.json").read_text())
    files = ("onnx/model.onnx", "onnx/model_int8.onnx")
    assert record["bytes"] == {name: (folder / name).stat().st_size for name in files}
    assert 0.9 < record["cosine"]["min"] <= record["cosine"]["mean"] <= 1
    assert record["cosine"]["texts"] == 60
    assert any(line.startswith("Quantised: ") and "cosine to float32" in line for line in lines)
    whole, other = (unit(onnx_form.onnx_vectors(folder, MESSAGES, name)) for name in files)
    assert not np.array_equal(whole, other)
    assert (whole * other).sum(1).min() > 0.9


def test_dialogues_keep_their_roles_and_turns_in_a_graph(
    tiny_checkpoint, sample_dialogues, tmp_path
):
    model, tokenizer = load_checkpoint(str(tiny_checkpoint))
    write_checkpoint(model, tokenizer, tmp_path)
    onnx_form.write_onnx(tmp_path, model)
    conversations = [dialogue.to_messages() for dialogue in sample_dialogues[:40]]
    vectors = onnx_form.onnx_vectors(tmp_path, conversations)
    assert close(vectors, encode(model, tokenizer, sample_dialogues[:40]), 1e-5)
    other = {"user": "assistant", "assistant": "user"}
    swapped = [
        {"role": other[turn["role"]], "content": turn["content"]} for turn in conversations[0]
    ]
    assert not close(onnx_form.onnx_vectors(tmp_path, [swapped]), vectors[:1], 1e-2)


@pytest.mark.parametrize(("name", "allowed"), [("bf16", 1e-1), ("fp16", 2e-2)])
def test_dialogue_encoders_are_rounded_in_a_copy(
    name, allowed, tiny_checkpoint, sample_dialogues, tmp_path
):
    model, tokenizer = load_checkpoint(str(tiny_checkpoint))
    write_checkpoint(model, tokenizer, tmp_path, name)
    assert model.dtype == torch.float32
    assert {value.dtype for value in load_file(tmp_path / "model.safetensors").values()} == {
        DTYPES[name]
    }
    expected = encode(model, tokenizer, sample_dialogues[:9])
    vectors = encode(*load_checkpoint(str(tmp_path)), sample_dialogues[:9])
    assert not close(vectors, expected, 1e-5)
    assert close(vectors, expected, allowed)
    rounded = load_checkpoint(str(tmp_path))[0]
    assert tolerance(model, name) == tolerance(rounded) == allowed
    assert tolerance(rounded, "fp32") == tolerance(model) == 1e-5


def test_a_graph_of_other_weights_and_a_broken_8_bit_graph_fail(exported, monkeypatch):
    folder, model = exported[1], build("dse")
    with pytest.raises(InputError, match=r"gives other embeddings \(ONNX"):
        onnx_form.verify_onnx(folder / "onnx/model.onnx", model.eval())
    opposite = {"onnx/model.onnx": 1.0, "onnx/model_int8.onnx": -1.0}
    monkeypatch.setattr(
        onnx_form, "onnx_vectors", lambda _, __, file: np.full((2, 1), opposite[file])
    )
    with pytest.raises(
        InputError,
        match=r"cosine to those in float32 is -1\.000 on average, expected at least 0\.8",
    ):
        onnx_form.write_int8(folder, utterances=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--int8", 'ONNX: the package onnxscript is missing; pip install "hf-dialemb[onnx]"'),
        ("--max-shard-size large", "--max-shard-size: got 'large', expected a size"),
    ],
)
def test_wrong_requests_are_refused_before_any_work(words, message, tmp_path, monkeypatch, refused):
    monkeypatch.setattr(
        onnx_form, "find_spec", lambda name: None if name == "onnxscript" else object()
    )
    assert message in refused(
        "export", "--model", tmp_path / "none", "--output", tmp_path / "out", *words.split()
    )
    assert list(tmp_path.iterdir()) == []
