"""Export of rankers: contexts and responses get the vectors of the checkpoint, however a stranger asks for them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from jinja2.exceptions import TemplateError
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer, BertConfig

from hf_dialemb.cli import main
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint
from hf_dialemb.hub.forms import ranker_form
from hf_dialemb.hub.forms.ranker_form import WAYS
from hf_dialemb.models.deep_attention_matching import DeepAttentionMatchingModel
from hf_dialemb.models.dialogue import Turn
from hf_dialemb.models.dual_encoder import DualEncoderModel
from hf_dialemb.models.multi_granularity import MultiGranularityModel
from hf_dialemb.models.ranking import encode_contexts, encode_responses, load_ranker
from hf_dialemb.models.transformer_dual_encoder import TransformerDualEncoderConfig, TransformerDualEncoderModel

pytestmark = pytest.mark.slow

LIMITS = {"max_context_tokens": 24, "max_response_tokens": 10}
CONTEXTS = [
    [("user", "I need a cheap hotel in the north."), ("assistant", "For how many nights?")],
    [("assistant", "Hello [SEP] <|response|> <s> [unused15], how can I help?"), ("user", "A taxi!")],
    [("user", "one two three four five six seven"), ("assistant", "yes "), ("user", "a hotel, please " * 12)],
    [("user", "a restaurant " * 9), ("assistant", "in the centre of the town"), ("user", "no")],
]
RESPONSES = ["Yes.", "", "What day , and at which time would you like the taxi to come ?" * 3, "[CLS] bye <|user|>"]


def messages(turns) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in turns]


def save(made, folder: Path) -> Path:
    model, tokenizer = made
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def lstm(dialogues, seed: int = 1):
    torch.manual_seed(seed)
    return DualEncoderModel.build(
        None, dialogues, vocabulary_size=200, embedding_size=8, hidden_size=6, **LIMITS
    )  # fmt: skip


def same(found, expected) -> bool:
    return found.shape == expected.shape and np.abs(found - expected).max() <= 1e-6 * np.abs(expected).max()


@pytest.fixture(scope="module")
def checkpoint(sample_dialogues, tmp_path_factory) -> Path:
    """An ensemble of LSTMs and a transformer that read the same words."""
    place = tmp_path_factory.mktemp("members")
    first, tokenizer = lstm(sample_dialogues)
    backbone = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    config = TransformerDualEncoderConfig(encoder_config=backbone, marker_ids=first.config.marker_ids, **LIMITS)
    config.encoder_config._name_or_path = "/home/somebody/bert"
    members = {"one": (first, tokenizer), "two": (TransformerDualEncoderModel(config), tokenizer)}
    paths = [str(save(made, place / name)) for name, made in members.items()]
    return save(MultiGranularityModel.from_members(paths), place / "ensemble")


@pytest.fixture(scope="module")
def exported(checkpoint, tmp_path_factory) -> tuple[Path, list[str]]:
    """The export of the ensemble as the command makes it, and the lines that it printed."""
    folder = tmp_path_factory.mktemp("exports") / "ensemble"
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.print", lambda *words, **_: lines.append(" ".join(map(str, words))))
        assert main(["export", "--model", str(checkpoint), "--output", str(folder)]) == 0
    return folder, lines


def test_every_way_of_loading_was_verified(exported):
    folder, lines = exported
    kinds = [
        f"{library}, {kind}" for library in ("AutoModel", "SentenceTransformer") for kind in ("contexts", "responses")
    ]
    assert [line.split(": largest")[0] for line in lines[:-1]] == [
        f"Verified: {k}, {way}" for way in WAYS for k in kinds
    ]
    assert lines[-1] == f"Wrote {folder}"
    for way, program in WAYS.items():
        assert ("_Blocked" in program) == ("package absent" in way) == ("trust_remote_code" in program)
        assert ("import hf_dialemb\n" in program) == ("package imported" in way)


def test_the_folder_holds_what_strangers_need(exported):
    folder, _ = exported
    names = {path.name for path in folder.iterdir()}
    assert names >= {
        "config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja", "modules.json",
        "sentence_bert_config.json", "config_sentence_transformers.json", "multi_granularity.py", "dual_encoder.py",
        "transformer_dual_encoder.py", "deep_attention_matching.py", "attention_matching.py", "ranker.py",
    }  # fmt: skip
    assert [name for name in names if name.endswith((".safetensors", ".bin", ".pt"))] == ["model.safetensors"]
    config = json.loads((folder / "config.json").read_text())
    assert config["auto_map"] == {
        "AutoConfig": "multi_granularity.MultiGranularityConfig",
        "AutoModel": "multi_granularity.MultiGranularityModel",
    }
    modules = json.loads((folder / "modules.json").read_text())
    assert [entry["type"] for entry in modules] == ["sentence_transformers.models.Transformer"]


def test_no_file_names_a_place_on_this_machine(exported, checkpoint):
    folder, _ = exported
    for file in [*folder.glob("*.json"), *folder.glob("*.jinja")]:
        text = file.read_text(encoding="utf-8")
        assert not [place for place in ("/home/somebody", str(checkpoint.parent), str(folder)) if place in text], file


def test_sentence_transformers_embeds_contexts_and_responses(exported, checkpoint):
    folder, _ = exported
    model, ranker = SentenceTransformer(str(folder), device="cpu"), load_ranker(str(checkpoint))
    contexts = encode_contexts(ranker, [[Turn(*turn) for turn in turns] for turns in CONTEXTS])
    responses = encode_responses(ranker, RESPONSES)
    given = [messages(turns) for turns in CONTEXTS]
    assert same(model.encode_query(given), contexts)
    assert same(model.encode(given), contexts)
    assert same(model.encode_document(RESPONSES), responses)
    assert same(model.encode([[{"role": "response", "content": text}] for text in RESPONSES]), responses)
    assert same(model.encode_query(["yes"]), encode_contexts(ranker, [[Turn("user", "yes")]]))
    assert model.get_embedding_dimension() == 6 + 16
    assert model.similarity_fn_name == "cosine"
    assert np.allclose(model.similarity(contexts, responses), contexts @ responses.T, atol=1e-6)


@pytest.mark.parametrize("family", ["words", "bert", "roberta", "modernbert"])
def test_the_stock_tokenizer_serves_texts_of_any_length(family, sample_dialogues, tiny_backbones, tmp_path):
    """What is too long is cut by the model as by our own layout, special tokens kept."""
    if family == "words":
        made = lstm(sample_dialogues)
    else:
        made = TransformerDualEncoderModel.build(tiny_backbones[family], (), towers="separate", **LIMITS)
    save(made, tmp_path)
    ranker = load_ranker(str(tmp_path))
    model, tokenizer = AutoModel.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    given = [messages(turns) for turns in CONTEXTS] + [[{"role": "response", "content": text}] for text in RESPONSES]
    batch = tokenizer.apply_chat_template(given, return_dict=True, return_tensors="pt", padding=True, truncation=True)
    assert batch["input_ids"].shape[1] > 2 * LIMITS["max_context_tokens"]
    with torch.inference_mode():
        found = model.eval()(**batch).pooler_output.numpy()
    contexts = encode_contexts(ranker, [[Turn(*turn) for turn in turns] for turns in CONTEXTS])
    assert same(found[: len(CONTEXTS)], contexts)
    assert same(found[len(CONTEXTS) :], encode_responses(ranker, RESPONSES))


def test_dot_products_stay_dot_products(sample_dialogues, tmp_path):
    write_checkpoint(*lstm(sample_dialogues), tmp_path)
    model = SentenceTransformer(str(tmp_path), device="cpu")
    assert model.similarity_fn_name == "dot"
    one, two = model.encode_query([messages(CONTEXTS[0])]), model.encode_document(["yes"])
    assert np.allclose(model.similarity(one, two), one @ two.T)


def test_an_old_tokenizer_gets_the_template_and_the_limit_of_the_published_form(sample_dialogues, tmp_path):
    model, tokenizer = lstm(sample_dialogues)
    expected = tokenizer.chat_template
    tokenizer.chat_template, tokenizer.model_max_length = "{{- messages[0]['content'] -}}", 24
    write_checkpoint(model, tokenizer, tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again.chat_template == expected
    assert again.model_max_length > 1000


def test_a_message_of_the_system_is_no_response_unless_it_is_the_prompt(sample_dialogues):
    _, tokenizer = lstm(sample_dialogues)
    said = [{"role": "user", "content": "yes"}]
    prompted = tokenizer.apply_chat_template([{"role": "system", "content": "response"}, *said], tokenize=False)
    assert prompted == tokenizer.apply_chat_template([{"role": "response", "content": "yes"}], tokenize=False)
    with pytest.raises(TemplateError, match="Unknown role system: expected one of user, assistant"):
        tokenizer.apply_chat_template([{"role": "system", "content": "You are a helpful assistant."}, *said])


def test_a_ranker_that_embeds_nothing_is_refused(sample_dialogues, tmp_path, capsys):
    sizes = {"vocabulary_size": 200, "embedding_size": 6, "num_blocks": 0, "max_turns": 3, "max_turn_tokens": 8}
    member = save(DeepAttentionMatchingModel.build(None, sample_dialogues, **sizes), tmp_path / "m")
    ensemble = save(MultiGranularityModel.from_members([str(member)] * 2), tmp_path / "ensemble")
    for folder, name in ((member, "deep-attention-matching"), (ensemble, "multi-granularity")):
        assert main(["export", "--model", str(folder), "--output", str(tmp_path / "out")]) == 2
        assert f"got a {name} ranker, which scores a context and a response together" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"m", "ensemble"}


def test_other_vectors_do_not_pass_the_verification(checkpoint, tmp_path, capsys, monkeypatch):
    program = "import sys, numpy as np\nnp.savez(sys.argv[3], **{'AutoModel, contexts': np.zeros((1, 2))})"
    monkeypatch.setattr(ranker_form, "WAYS", {"a way that differs": program})
    assert main(["export", "--model", str(checkpoint), "--output", str(tmp_path / "out")]) == 2
    assert "gives other embeddings (AutoModel, contexts, a way that differs)" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_dialogues_is_embedded_as_contexts(checkpoint, sample_dialogues, tmp_path):
    lines = [json.dumps(dialogue.to_json()) for dialogue in sample_dialogues[:5]]
    (tmp_path / "dialogues.jsonl").write_text("\n".join(lines))
    words = ["--model", checkpoint, "--input", tmp_path / "dialogues.jsonl", "--output", tmp_path / "out.parquet"]
    assert main(["embed", *map(str, words)]) == 0
    found = np.stack(pq.read_table(tmp_path / "out.parquet")["embedding"].to_numpy())
    model, _ = load_checkpoint(str(checkpoint))
    expected = encode_contexts(load_ranker(str(checkpoint)), [dialogue.turns for dialogue in sample_dialogues[:5]])
    assert found.shape == (5, model.config.hidden_size)
    assert same(found, expected)
