"""Exports of dialogue encoders, rankers and utterance encoders: files, loading, and refusals."""

import json
import logging
import subprocess
import warnings
from pathlib import Path

import pytest
import torch
from checkpoints import deep_attention_matching, save_dse
from exports import close, save, stock
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer, BertConfig

from hf_dialemb import (
    Dialog2FlowModel,
    DualEncoderModel,
    InputError,
    MultiGranularityModel,
    TransformerDualEncoderConfig,
    TransformerDualEncoderModel,
    Turn,
    load_ranker,
)
from hf_dialemb.hub import custom_code, plain_encoder, published_folder
from hf_dialemb.hub.export import load_checkpoint, verify, write_checkpoint
from hf_dialemb.methods.ranker import encode_contexts, encode_responses
from hf_dialemb.methods.utterance import encode_utterances

pytestmark = pytest.mark.slow

FORMS = {
    "dial2vec": (
        [""],
        {"configuration_dial2vec.py", "modeling_dial2vec.py"},
        {
            "AutoConfig": "configuration_dial2vec.Dial2VecConfig",
            "AutoModel": "modeling_dial2vec.Dial2VecModel",
        },
    ),
    "multi-granularity": (
        [", contexts", ", responses"],
        {
            "modeling_multi_granularity.py",
            "modeling_dual_encoder.py",
            "configuration_dual_encoder.py",
        },
        {
            name: f"modeling_multi_granularity.MultiGranularity{name[4:]}"
            for name in ("AutoConfig", "AutoModel")
        },
    ),
}
LIMITS = {"max_context_tokens": 24, "max_response_tokens": 10}
CONTEXTS = [
    [("user", "I need a cheap hotel in the north."), ("assistant", "For how many nights?")],
    [
        ("assistant", "Hello [SEP] <|response|> <s> [unused15], how can I help?"),
        ("user", "A taxi!"),
    ],
    [
        ("user", "one two three four five six seven"),
        ("assistant", "yes "),
        ("user", "a hotel, please " * 12),
    ],
    [("user", "a restaurant " * 9), ("assistant", "in the centre of the town"), ("user", "no")],
]
TURNS = [[Turn(*turn) for turn in turns] for turns in CONTEXTS]
MESSAGES = [[{"role": role, "content": content} for role, content in turns] for turns in CONTEXTS]
RESPONSES = [
    "Yes.",
    "",
    "What day , and at which time would you like the taxi to come ?" * 3,
    "[CLS] bye <|user|>",
]
AS_MESSAGES = [[{"role": "response", "content": text}] for text in RESPONSES]


def words_ranker(dialogues):
    torch.manual_seed(1)
    sizes = {"vocabulary_size": 200, "embedding_size": 8, "hidden_size": 6}
    return DualEncoderModel.build(None, dialogues, **sizes, **LIMITS)


@pytest.fixture(scope="module")
def ensemble(sample_dialogues, tmp_path_factory) -> Path:
    """Return an ensemble of LSTMs and a transformer that read the same words."""
    place = tmp_path_factory.mktemp("members")
    first, tokenizer = words_ranker(sample_dialogues)
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    backbone = BertConfig(vocab_size=len(tokenizer), **sizes)
    config = TransformerDualEncoderConfig(
        encoder_config=backbone, marker_ids=first.config.marker_ids, **LIMITS
    )
    config.encoder_config._name_or_path = "/home/somebody/bert"
    members = {"one": first, "two": TransformerDualEncoderModel(config)}
    paths = [str(save((member, tokenizer), place / name)) for name, member in members.items()]
    return save(MultiGranularityModel.from_members(paths), place / "ensemble")


@pytest.fixture(scope="module")
def exports(tiny_checkpoint, ensemble, exporting) -> dict[str, tuple[Path, list[str]]]:
    """Export each kind by the command; return the folders and the printed lines."""
    with pytest.MonkeyPatch.context() as patch:
        # into processes that share nothing with others
        patch.setattr(published_folder, "subprocess", subprocess)
        really = exporting(tiny_checkpoint)
    return {"dial2vec": really, "multi-granularity": exporting(ensemble)}


@pytest.mark.parametrize("kind", FORMS)
def test_an_exported_folder_is_complete_and_verified(
    kind, exports, tiny_bert, tiny_checkpoint, ensemble
):
    (folder, lines), (inputs, code, auto_map) = exports[kind], FORMS[kind]
    ways = [
        f"{library}{what}, {way}"
        for way in custom_code.WAYS
        for library in ("AutoModel", "SentenceTransformer")
        for what in inputs
    ]
    assert [line.split(": largest")[0] for line in lines] == [f"Verified: {way}" for way in ways]
    names = {path.name for path in folder.iterdir()}
    assert names >= {"tokenizer.json", "chat_template.jinja", "config_sentence_transformers.json"}
    assert {name for name in names if name.endswith(".py")} == code
    assert [path.name for path in folder.parent.iterdir()] == [
        folder.name
    ]  # nothing temporary stays beside it
    config = json.loads((folder / "config.json").read_text())
    assert (config["model_type"], config["auto_map"]) == (f"dialemb-{kind}", auto_map)
    places = {
        tiny_bert,
        tiny_checkpoint,
        ensemble.parent,
        folder,
        folder.parent,
        Path.home(),
        "/home/somebody",
    }
    for file in [*folder.glob("*.json"), *folder.glob("*.jinja")]:
        text = file.read_text(encoding="utf-8")
        assert not [place for place in places if str(place) in text], file.name
        assert '"/' not in text.replace('"/"', "").replace('"/":', ""), (
            file.name
        )  # the token "/" is no path


def test_an_existing_folder_or_a_foreign_model_is_refused(
    tiny_checkpoint, tiny_bert, sample_dialogues, tmp_path, refused
):
    ranker = deep_attention_matching(sample_dialogues)
    member = save((ranker.model, ranker.tokenizer), tmp_path / "m")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/mine.txt").write_text("keep me")
    for model, output, message in (
        (tiny_checkpoint, "mine", f"--output {tmp_path / 'mine'} exists already"),
        (tiny_bert, "out", "is a bert model; expected a checkpoint of"),
        (member, "out", "scores a context and a response together, and embeds neither"),
    ):
        assert message in refused("export", "--model", model, "--output", tmp_path / output)
    assert {path.name for path in tmp_path.iterdir()} == {"m", "mine"}
    assert (tmp_path / "mine/mine.txt").read_text() == "keep me"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "raise RuntimeError('no such class')",
            "does not load (a way): RuntimeError: no such class",
        ),
        (
            "import sys, numpy as np\n"
            "np.savez(sys.argv[3], **{'AutoModel, contexts': np.zeros((1, 2))})",
            "gives other embeddings (AutoModel, contexts, a way)",
        ),
    ],
)
def test_nothing_appears_that_fails_or_gives_other_vectors(
    program, message, ensemble, tmp_path, refused, monkeypatch
):
    monkeypatch.setattr(custom_code, "WAYS", {"a way": program})
    assert message in refused("export", "--model", ensemble, "--output", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_sentence_transformers_embeds_contexts_and_responses(exports, ensemble):
    model, ranker = stock(exports["multi-granularity"][0]), load_ranker(str(ensemble))
    contexts, responses = encode_contexts(ranker, TURNS), encode_responses(ranker, RESPONSES)
    assert close(model.encode_query(MESSAGES), contexts)
    assert close(model.encode(MESSAGES), contexts)
    assert close(model.encode_document(RESPONSES), responses)
    assert close(model.encode(AS_MESSAGES), responses)
    assert close(model.encode_query(["yes"]), encode_contexts(ranker, [[Turn("user", "yes")]]))
    assert model.similarity_fn_name == "cosine"


@pytest.mark.parametrize("family", ["words", "bert", "roberta", "modernbert"])
def test_the_stock_tokenizer_serves_texts_of_any_length(
    family, sample_dialogues, tiny_backbones, tmp_path
):
    """What is too long is cut by the model as by our own layout, special tokens kept."""
    if family == "words":
        made = words_ranker(sample_dialogues)
    else:
        made = TransformerDualEncoderModel.build(
            tiny_backbones[family], (), towers="separate", **LIMITS
        )
    ranker = load_ranker(str(save(made, tmp_path)))
    model, tokenizer = AutoModel.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    options = {"return_dict": True, "return_tensors": "pt", "padding": True, "truncation": True}
    batch = tokenizer.apply_chat_template(MESSAGES + AS_MESSAGES, **options)
    assert batch["input_ids"].shape[1] > 2 * LIMITS["max_context_tokens"]
    with torch.inference_mode():
        actual = model.eval()(**batch).pooler_output.numpy()
    assert close(actual[: len(TURNS)], encode_contexts(ranker, TURNS))
    assert close(actual[len(TURNS) :], encode_responses(ranker, RESPONSES))


WAYS = [
    "AutoModel, strings",
    "AutoModel, messages",
    "SentenceTransformer, strings",
    "SentenceTransformer, messages",
]
TEXTS = [
    "i need a hotel",
    "Hello [SEP] [MASK] [unused3] </s>!",
    "",
    " a\t taxi,\n please ",
    "a room " * 40,
]


@pytest.fixture(scope="module")
def checkpoint(tiny_bert, tmp_path_factory) -> Path:
    return save_dse(tiny_bert, tmp_path_factory.mktemp("training") / "dse")


@pytest.fixture(scope="module")
def exported(checkpoint, exporting) -> tuple[Path, list[str]]:
    """Return the export of the checkpoint by the command, and the printed lines."""
    return exporting(checkpoint)


@pytest.fixture(scope="module")
def folder(exported) -> Path:
    return exported[0]


def record(*path: Path | str) -> dict:
    return json.loads(Path(*path).read_text(encoding="utf-8"))


def test_stock_files_load_in_every_way_without_the_package(exported):
    folder, lines = exported
    assert [line.split(": largest")[0] for line in lines] == [
        f"Verified: {way}, package absent" for way in WAYS
    ]
    assert "trust_remote_code" not in plain_encoder._PROGRAM
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == {
        "1_Pooling/config.json",
        "chat_template.jinja",
        "config.json",
        "config_sentence_transformers.json",
        "hf_dialemb_config.json",
        "model.safetensors",
        "modules.json",
        "sentence_bert_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    config, pooling = record(folder, "config.json"), record(folder, "1_Pooling/config.json")
    assert (config["model_type"], config["architectures"], config["dtype"]) == (
        "bert",
        ["BertModel"],
        "float32",
    )
    assert not {"auto_map", "encoder_config", "_name_or_path"} & set(config)
    modes = {name: pooling[name] for name in pooling if name.startswith("pooling_mode")}
    assert (len(modes), [name for name in modes if modes[name]]) == (
        6,
        ["pooling_mode_mean_tokens"],
    )
    assert record(folder, "tokenizer_config.json")["model_max_length"] == 32
    side = record(folder, "hf_dialemb_config.json")
    assert (side["method"], side["settings"]["loss_temperature"]) == ("dse", 0.05)


def test_no_file_names_a_place_on_this_machine(tiny_bert, tmp_path):
    encoder, tokenizer = Dialog2FlowModel.from_backbone(
        tiny_bert, label_encoder=str(tmp_path / "my-labels")
    )
    write_checkpoint(encoder, tokenizer, tmp_path / "flow")
    assert (
        record(tmp_path, "flow/hf_dialemb_config.json")["settings"]["label_encoder"] == "my-labels"
    )
    for file in (
        path for path in (tmp_path / "flow").rglob("*") if path.suffix in {".json", ".jinja"}
    ):
        text = file.read_text(encoding="utf-8")
        assert not [
            place for place in (tiny_bert, str(tmp_path), str(Path.home())) if place in text
        ], file.name
        assert "local" not in text or file.name == "tokenizer.json", file.name


def test_the_weights_are_the_backbones_and_all_that_its_class_has(folder, checkpoint):
    before, after = (
        load_file(checkpoint / "model.safetensors"),
        load_file(folder / "model.safetensors"),
    )
    assert any(name.startswith("heads.") for name in before)
    ours = {
        name.removeprefix("encoder."): value
        for name, value in before.items()
        if name.startswith("encoder.")
    }
    assert after.keys() - ours.keys() == {"pooler.dense.weight", "pooler.dense.bias"}
    assert not any(after[name].any() for name in after.keys() - ours.keys())
    assert all(torch.equal(after[name], ours[name]) for name in ours)
    _, loading = AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not any(loading[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))


def test_sentence_transformers_loads_it_without_a_warning(folder, checkpoint, caplog):
    expected = encode_utterances(*load_checkpoint(str(checkpoint)), TEXTS)
    caplog.clear()
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        model = stock(folder)
        assert close(model.encode(TEXTS), expected)
        chats = [[{"role": "user", "content": text}] for text in TEXTS]
        assert close(model.encode(chats), expected)
    assert not caplog.records
    assert (model.max_seq_length, model.similarity_fn_name) == (32, "cosine")


def test_any_tokenizer_cuts_a_long_text_and_keeps_its_last_token(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(TEXTS[4], truncation=True)["input_ids"]
    assert (len(ids), ids[-1]) == (32, tokenizer.sep_token_id)
    assert Tokenizer.from_file(str(folder / "tokenizer.json")).encode(TEXTS[4]).ids == ids


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_becomes_float32(dtype, tiny_bert, tmp_path):
    model, tokenizer = load_checkpoint(str(save_dse(tiny_bert, tmp_path / "half", dtype)))
    write_checkpoint(model, tokenizer, tmp_path / "plain")
    plain = stock(tmp_path / "plain")
    assert plain[0].model.dtype == torch.float32
    assert close(plain.encode(TEXTS), encode_utterances(model, tokenizer, TEXTS))


def test_changed_weights_do_not_pass_the_verification(checkpoint, tmp_path):
    model, tokenizer = load_checkpoint(str(checkpoint))
    write_checkpoint(model, tokenizer, tmp_path / "plain")
    weights = load_file(tmp_path / "plain" / "model.safetensors")
    weights["encoder.layer.1.output.dense.bias"][0] += 1e-3
    save_file(weights, tmp_path / "plain" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"gives other embeddings .*e-04$"):
        list(verify(tmp_path / "plain", model, tokenizer))
