"""Merging: what trainings moved, added to their backbone.

Weights, adapters, folders and refusals.
"""

import json
import shutil

import numpy as np
import pytest
import torch
from afresh import printed_afresh
from exports import stock
from interface_block import dialogues_in_memory
from safetensors.torch import load_file
from transformers import AutoModel, BertConfig, BertModel

import hf_dialemb
from hf_dialemb.data import load_dialogues
from hf_dialemb.encoders.encoder import dialogue_texts
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.results.contamination import sets_behind
from hf_dialemb.methods.merged import MergedModel, factors

DIALOGUES = dialogues_in_memory()


@pytest.fixture(scope="module")
def trained(tiny_bert, tmp_path_factory):
    """Two trainings of one backbone.

    Of utterances, and of dialogues, whose markers are further words.
    """
    place, methods = tmp_path_factory.mktemp("trained"), ("dse", "dial2vec")
    options = {
        "backbone": tiny_bert,
        "max_steps": 3,
        "learning_rate": 0.01,
        "save_steps": 3,
        "max_dialogues": 20,
    }
    return [
        hf_dialemb.train(name, "sample", output_dir=place / name, **options).path
        for name in methods
    ]


def merged(backbone, parts, rank=None):
    return MergedModel.from_parts(
        str(backbone), {str(path): weight for path, weight in parts.items()}, rank
    )[0]


def test_it_is_the_backbone_and_what_each_moved_or_a_rank_of_it(tiny_bert, trained):
    start = AutoModel.from_pretrained(tiny_bert).state_dict()
    first, second = (load_file(path / "model.safetensors") for path in trained)
    found = merged(tiny_bert, {trained[0]: 0.5, trained[1]: 2}).encoder.state_dict()
    swapped = merged(tiny_bert, {trained[1]: 2, trained[0]: 0.5}).encoder.state_dict()
    for name in found:
        expected = start[name] + 0.5 * (first[f"encoder.{name}"] - start[name])
        expected += 2 * (second[f"encoder.{name}"][: len(expected)] - start[name])
        assert torch.allclose(found[name], expected, atol=1e-6), name
        assert torch.allclose(swapped[name], expected, atol=1e-6), name
    start = AutoModel.from_pretrained(tiny_bert).state_dict()
    whole, cut = (merged(tiny_bert, {trained[0]: 1}, rank) for rank in (None, 2))
    matrices = {
        name for name, value in start.items() if name.startswith("encoder.") and value.dim() == 2
    }
    assert set(cut.adapter) == {name.removesuffix(".weight") for name in matrices}
    for name, value in cut.encoder.state_dict().items():
        moved, all_of_it = value - start[name], whole.encoder.state_dict()[name] - start[name]
        if name in matrices:
            left, values, right = np.linalg.svd(all_of_it.double().numpy())
            best = left[:, :2] * values[:2] @ right[:2]
            assert np.abs(moved.numpy() - best).max() <= 0.01 * np.abs(best).max()  # bfloat16
        else:
            assert torch.equal(value, start[name]), name
    random = torch.randn(6, 4)
    assert torch.allclose(torch.mm(*reversed(factors(random, 4))), random, atol=0.05)


def test_the_result_is_a_run_like_any_other(tiny_bert, trained, tmp_path, printed):
    parts = {str(trained[0]): 1.0, trained[1]: 0.3}
    run = hf_dialemb.merge(tiny_bert, parts, output_dir=tmp_path / "both")
    vectors, texts = run.encoder().encode(DIALOGUES), dialogue_texts(load_dialogues(DIALOGUES))
    assert np.allclose(
        run.encoder().encode_utterances(texts), vectors, atol=1e-5
    )  # a dialogue is one text
    assert np.allclose(stock(run.path).encode(texts), vectors, atol=1e-5)
    assert sets_behind(str(run.path)) == sets_behind(str(trained[1])) == {("sample", "train")}
    words = ("model", "merge", "--backbone", tiny_bert, "--model", trained[0], f"{trained[1]}=0.3")
    assert printed(*words, "--output", tmp_path / "again") == f"Wrote {tmp_path / 'again'}\n"
    assert (tmp_path / "again/model.safetensors").read_bytes() == (
        run.path / "model.safetensors"
    ).read_bytes()
    # a merged one is a training too
    more = hf_dialemb.merge(tiny_bert, {run: 2}, output_dir=tmp_path / "more")
    assert len(more.report()["trainings"]) == 2


@pytest.mark.slow
def test_it_is_published_with_a_card_that_names_its_parts(trained, tiny_bert, tmp_path, printed):
    run = hf_dialemb.merge(tiny_bert, {trained[1]: 1.0}, output_dir=tmp_path / "merged")
    folder, results = tmp_path / "published", tmp_path / "results.json"
    printed("export", "--model", run.path, "--output", folder)
    text = ["hello there"]
    assert np.allclose(stock(folder).encode(text), run.encoder().encode_utterances(text), atol=1e-6)
    printed(
        "evaluate",
        "--model",
        run.path,
        tiny_bert,
        "--corpus",
        "sample",
        "--seeds",
        "1",
        "--output",
        results,
    )
    printed("model", "card", "--model", folder, "--run", run.path, "--results", results)
    card = (folder / "README.md").read_text()
    for fact in (
        "| Parts | dial2vec x 1 |",
        "| Method | Merged trainings |",
        "| sample | train |",
        "2212.04089",
    ):
        assert fact in card


ADAPTED = """
import json, sys
import numpy as np
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer
folder, backbone, output = sys.argv[1:]
plain, loaded = SentenceTransformer(folder, device="cpu"), AutoModel.from_pretrained(backbone)
loaded.load_adapter(folder)
batch = AutoTokenizer.from_pretrained(folder)(["hello there"], return_tensors="pt")
np.savez(output, plain=plain.encode(["hello there"]), loaded=loaded(**batch).last_hidden_state.detach().mean(1).numpy())
"""


@pytest.mark.slow
def test_the_adapter_gives_the_merged_vectors_in_a_fresh_process(tiny_bert, trained, tmp_path):
    pytest.importorskip("peft", reason="peft reads adapters")
    run = hf_dialemb.merge(tiny_bert, {trained[0]: 1}, rank=4, output_dir=tmp_path / "cut")
    folder, found = run.path / "adapter", tmp_path / "found.npz"
    printed_afresh(ADAPTED, folder, tiny_bert, found)
    expected = run.encoder().encode_utterances(["hello there"])
    for way, vectors in np.load(found).items():
        assert np.allclose(vectors, expected, atol=1e-5), way
    assert json.loads((folder / "adapter_config.json").read_text())["r"] == 4


@pytest.fixture
def folders(tiny_bert, trained, tmp_path):
    """A training of the backbone, and what is none."""
    found = {"start": tiny_bert, "dse": trained[0], "static": tmp_path / "static"}
    (found["static"] / "0_StaticEmbedding").mkdir(parents=True)
    for name, size in (("other", 16), ("wider", 8)):
        model = BertModel(
            BertConfig.from_pretrained(tiny_bert, hidden_size=size, initializer_range=1.0)
        )
        found[name] = shutil.copytree(tiny_bert, tmp_path / name)
        model.save_pretrained(found[name])
    return found


def test_what_cannot_be_merged_is_refused(folders, tiny_bert, tmp_path, trained, refused):
    for parts, message in (
        ({}, "parts: got none"),
        ({"dse": float("nan")}, "got the weight nan for .*dse', expected a number"),
        ({"start": 1}, "moved nothing of .* leave it out"),
        ({"other": 1}, r"is \d+% of its length away from .* merge trainings of one backbone"),
        ({"wider": 1}, r"has \(\d+, 8\) for embeddings.* expected the \(\d+, 16\)"),
        ({"static": 1}, "static' has no config.json"),
    ):
        given = {folders[name]: weight for name, weight in parts.items()}
        with pytest.raises(InputError, match=message):
            hf_dialemb.merge(tiny_bert, given, output_dir=tmp_path / "x")
        assert not (tmp_path / "x").exists()
    for parts, message in [
        ([f"{trained[0]}=half"], "got the weight 'half', expected a number"),
        ([f"{trained[0]}=1", f"{trained[0]}=2"], "got one folder twice"),
        ([trained[0]], f"{tmp_path} exists already"),
    ]:
        assert message in refused(
            "model", "merge", "--backbone", tiny_bert, "--output", tmp_path, "--model", *parts
        )
