"""Backbones of sentence-transformers keep what their folder says of pooling, prompts and further
modules; architectures train a step, are exported, and load without the package."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from architectures import SETTINGS, save_architecture
from exports import save
from published_models import output_without_package, publish
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from talks import CHATS
from transformers import AutoModel, AutoTokenizer, T5GemmaConfig, T5GemmaEncoderModel

import hf_dialemb
from hf_dialemb.errors import InputError
from hf_dialemb.hub.export import export
from hf_dialemb.methods import get_method
from hf_dialemb.storage.pretrained import load_pretrained

TEXTS = ["I need a cheap hotel in the north, please.", "My card was stolen!", "Yes."]
PROMPTS = {"prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": "query"}
STEPS = {
    "max_steps": 1,
    "learning_rate": 1e-12,
    "per_device_train_batch_size": 4,
    "disable_tqdm": True,
}


def sentence_model(
    place: Path, words: str, architecture: str, pooling: str, *modules, side="right", **options
) -> str:
    """Write a folder of sentence-transformers around a tiny model of an architecture."""
    save_architecture(architecture, place / "backbone", words)
    transformer = Transformer(str(place / "backbone"), max_seq_length=64)
    transformer.tokenizer.padding_side = side
    model = SentenceTransformer(
        modules=[transformer, Pooling(16, pooling_mode=pooling), *modules], device="cpu", **options
    )
    model.save(str(place / "model"))
    return str(place / "model")


def before_and_after(folder: str, dialogues, output: Path) -> tuple[np.ndarray, np.ndarray]:
    """Embed the texts by sentence-transformers, and by DSE trained from there by a step that moves
    nothing."""
    run = hf_dialemb.train("dse", dialogues[:8], output_dir=output, backbone=folder, **STEPS)
    return SentenceTransformer(folder, device="cpu").encode(TEXTS), run.encoder().encode_utterances(
        TEXTS
    )


POOLING = pytest.mark.habit(
    "backbone with cls (BGE), last-token (Qwen3-Embedding) or mean pooling", "its pooling is kept"
)


@pytest.mark.parametrize(
    ("form", "options"),
    [
        pytest.param("bert cls right", {}, marks=POOLING),
        pytest.param("bert mean right", {}, marks=POOLING),
        pytest.param("qwen3 lasttoken left", {}, marks=POOLING),
        pytest.param("qwen3 lasttoken right", {}, marks=POOLING),
        pytest.param(
            "bert mean right",
            PROMPTS,
            marks=pytest.mark.habit("backbone with prompts (E5)", "the default prompt is kept"),
        ),
    ],
)
def test_pooling_and_prompts_are_kept(form, options, tiny_bert, sample_dialogues, tmp_path):
    architecture, pooling, side = form.split()
    folder = sentence_model(tmp_path, tiny_bert, architecture, pooling, side=side, **options)
    expected, vectors = before_and_after(folder, sample_dialogues, tmp_path / "run")
    assert np.abs(vectors - expected).max() <= 1e-5


@pytest.mark.habit(
    "backbone that normalises its vectors", "directions are kept; lengths vary while it learns"
)
def test_a_normalised_backbone_keeps_its_directions(tiny_bert, sample_dialogues, tmp_path):
    folder = sentence_model(tmp_path, tiny_bert, "bert", "mean", Normalize())
    expected, vectors = before_and_after(folder, sample_dialogues, tmp_path / "run")
    cosines = (vectors * expected).sum(1) / np.linalg.norm(vectors, axis=1)
    assert cosines.min() >= 1 - 1e-6


@pytest.mark.parametrize(
    ("pooling", "modules", "reason"),
    [
        pytest.param(
            "mean",
            [Dense(16, 8)],
            "Dense",
            marks=pytest.mark.habit(
                "backbone with a Dense module (EmbeddingGemma)", "refused: name one without"
            ),
        ),
        pytest.param(
            "max",
            [],
            "max pooling",
            marks=pytest.mark.habit("backbone with max pooling", "refused: name another"),
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(pooling, modules, reason, tiny_bert, tmp_path):
    folder = sentence_model(tmp_path, tiny_bert, "bert", pooling, *modules)
    with pytest.raises(InputError, match=reason):
        get_method("dse").model_class.from_backbone(folder)


@pytest.mark.slow
@pytest.mark.habit(
    "export of a model whose backbone has prompts and cls pooling",
    "keeps both, for texts and messages",
)
@pytest.mark.parametrize(
    ("architecture", "pooling", "side"), [("bert", "cls", "right"), ("qwen3", "lasttoken", "left")]
)
def test_an_export_has_the_pooling_and_prompts(
    architecture, pooling, side, tiny_bert, sample_dialogues, tmp_path
):
    folder = sentence_model(tmp_path, tiny_bert, architecture, pooling, side=side, **PROMPTS)
    run = hf_dialemb.train(
        "dse", sample_dialogues[:8], output_dir=tmp_path / "run", backbone=folder, **STEPS
    )
    before = SentenceTransformer(folder, device="cpu")
    after = SentenceTransformer(str(export(run, tmp_path / "export")), device="cpu")
    messages = [[{"role": "user", "content": text}] for text in TEXTS]
    for options in ({}, {"prompt_name": "passage"}):
        expected = before.encode(TEXTS, **options)
        assert np.abs(after.encode(TEXTS, **options) - expected).max() <= 1e-5
        assert np.abs(after.encode(messages, **options) - expected).max() <= 1e-5


CODE = {
    "configuration_own.py": """
from transformers import BertConfig
class OwnConfig(BertConfig):
    model_type = "{0}"
""",
    "modeling_own.py": """
from transformers import BertModel
from .configuration_own import OwnConfig
class OwnModel(BertModel):
    config_class = OwnConfig
    def forward(self, *args, **kwargs):
        output = super().forward(*args, **kwargs)
        output.last_hidden_state = 2 * output.last_hidden_state
        return output
""",
}
"""A BERT whose vectors are twice as long."""


def with_code(folder: Path, words: str, model_type: str) -> str:
    """Write a backbone with code of its own beside its weights."""
    shutil.copytree(words, folder)
    config = json.loads((folder / "config.json").read_text())
    classes = {"AutoConfig": "configuration_own.OwnConfig", "AutoModel": "modeling_own.OwnModel"}
    config |= {"model_type": model_type, "architectures": ["OwnModel"], "auto_map": classes}
    (folder / "config.json").write_text(json.dumps(config))
    for name, text in CODE.items():
        (folder / name).write_text(text.replace("{0}", model_type))
    return str(folder)


@pytest.mark.habit(
    "backbone with code of its own, train(..., trust_remote_code=True)", "works; never by default"
)
@pytest.mark.parametrize("method", ["dse", "dial2vec"])
def test_a_backbone_with_trusted_code_trains(method, tiny_bert, sample_dialogues, tmp_path):
    folder = with_code(tmp_path / "backbone", tiny_bert, f"own_{method}")
    options = {"output_dir": tmp_path / "run", "backbone": folder, **STEPS}
    with pytest.raises(InputError, match="set trust_remote_code=True"):
        hf_dialemb.train(method, sample_dialogues[:8], **options)
    run = hf_dialemb.train(method, sample_dialogues[:8], trust_remote_code=True, **options)
    shutil.rmtree(folder)
    vectors = run.encoder(trust_remote_code=True).encode(sample_dialogues[:2])
    options |= {"output_dir": tmp_path / "plain", "backbone": tiny_bert}
    plain = (
        hf_dialemb.train(method, sample_dialogues[:8], **options)
        .encoder()
        .encode(sample_dialogues[:2])
    )
    np.testing.assert_allclose(vectors, 2 * plain, atol=1e-5)
    with pytest.raises(InputError, match="set trust_remote_code=True"):
        run.encoder()


@pytest.mark.habit(
    "export of a run over a backbone with code of its own", "refused: load the run as it is"
)
def test_a_run_over_a_backbone_with_code_is_not_exported(tiny_bert, tmp_path):
    folder = with_code(tmp_path / "backbone", tiny_bert, "own_saved")
    model, tokenizer = get_method("dse").model_class.from_backbone(folder, trust_remote_code=True)
    save((model, tokenizer), tmp_path / "run")
    with pytest.raises(InputError, match="exports do not carry"):
        export(tmp_path / "run", tmp_path / "export")
    shutil.rmtree(folder)
    again = load_pretrained(AutoModel, str(tmp_path / "run"), trust_remote_code=True)
    save((again, tokenizer), tmp_path / "again")
    vectors = hf_dialemb.load_encoder(tmp_path / "again", trust_remote_code=True).encode_utterances(
        TEXTS
    )
    expected = hf_dialemb.load_encoder(model, tokenizer=tokenizer).encode_utterances(TEXTS)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.habit(
    "backbone whose weights are int8, in one file, in shards or in a .bin file", "refused"
)
@pytest.mark.parametrize("form", ["one file", "shards", "bin", "older bin"])
def test_rounded_weights_are_refused_in_every_form(form, tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "backbone")
    weights = {
        name: (20 * value).to(torch.int8)
        for name, value in load_file(folder / "model.safetensors").items()
    }
    (folder / "model.safetensors").unlink()
    if form == "one file":
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
    elif form != "shards":
        torch.save(
            weights, folder / "pytorch_model.bin", _use_new_zipfile_serialization=form == "bin"
        )
    else:
        names = {
            name: f"model-0000{1 + row % 2}-of-00002.safetensors"
            for row, name in enumerate(weights)
        }
        for file in set(names.values()):
            save_file(
                {name: weights[name] for name in names if names[name] == file},
                folder / file,
                {"format": "pt"},
            )
        index = {"metadata": {"total_size": 1}, "weight_map": names}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for load in (get_method("dse").model_class.from_backbone, hf_dialemb.load_encoder):
        with pytest.raises(InputError, match=r"8 bits \(int8\)"):
            load(str(folder))


@pytest.mark.habit("T5GemmaEncoderModel as a backbone", "works")
@pytest.mark.parametrize("method", ["dse", "dial2vec"])
def test_an_encoder_of_t5gemma_trains(method, tiny_bert, sample_dialogues, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    size = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
    }
    part = {**size, "head_dim": 8, "intermediate_size": 32, "vocab_size": len(tokenizer)}
    config = T5GemmaConfig(
        encoder=part, decoder=part, vocab_size=len(tokenizer), is_encoder_decoder=False
    )
    save((T5GemmaEncoderModel(config), tokenizer), tmp_path / "backbone")
    options = {"output_dir": tmp_path / "run", "backbone": str(tmp_path / "backbone"), **STEPS}
    vectors = (
        hf_dialemb.train(method, sample_dialogues[:8], **options)
        .encoder()
        .encode(sample_dialogues[:2])
    )
    assert vectors.shape == (2, 16)
    assert np.isfinite(vectors).all()


@pytest.mark.habit("dial2vec over a backbone with cls pooling", "pools by speakers, and warns")
def test_dial2vec_warns_of_another_pooling(tiny_bert, tmp_path, caplog):
    folder = sentence_model(tmp_path, tiny_bert, "bert", "cls")
    get_method("dial2vec").model_class.from_backbone(folder)
    assert "loses its cls pooling" in caplog.text


METHODS = {"dse": {}, "dial2vec": {"num_negatives": 1, "max_tokens": 64}}
NAMES = [f"{architecture} {method}" for architecture in SETTINGS for method in METHODS]
LOAD = """
import json, sys
import numpy as np
from sentence_transformers import SentenceTransformer
folders, chats = map(json.loads, sys.argv[1:3])
vectors = {}
for name, folder in folders.items():
    model = SentenceTransformer(folder, device="cpu", trust_remote_code="dial2vec" in name)
    vectors[name] = model.encode(chats, batch_size=1, show_progress_bar=False)
np.savez(sys.argv[3], **vectors)
"""


@pytest.fixture(scope="module")
def trained(
    tiny_bert, sample_dialogues, tmp_path_factory
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The vectors of every run by ``load_encoder``, and by its export in a process without the
    package."""
    place = tmp_path_factory.mktemp("architectures")
    expected, folders = {}, {}
    settings = {
        "max_steps": 1,
        "per_device_train_batch_size": 8,
        "learning_rate": 1e-4,
        "disable_tqdm": True,
    }
    for architecture in SETTINGS:
        backbone = str(save_architecture(architecture, place / architecture, tiny_bert))
        for method, small in METHODS.items():
            name, output = f"{architecture} {method}", place / f"{architecture}-{method}"
            run = hf_dialemb.train(
                method,
                sample_dialogues[:8],
                output_dir=output,
                backbone=backbone,
                **settings,
                **small,
            )
            encoder = run.encoder()  # one by one, as ConvBERT's convolutions read padding
            expected[name] = np.concatenate([encoder.encode([chat]) for chat in CHATS])
            folders[name] = str(publish(output, place / f"{architecture}-{method}-published"))
    output = place / "vectors.npz"
    output_without_package(LOAD, place, json.dumps(folders), json.dumps(CHATS), output)
    with np.load(output) as vectors:
        return {name: (expected[name], vectors[name]) for name in NAMES}


@pytest.mark.slow
@pytest.mark.habit(
    "21 architectures as backbones, exported and loaded without the package", "works"
)
@pytest.mark.parametrize("name", NAMES)
def test_an_export_without_the_package_equals_the_run(trained, name):
    expected, vectors = trained[name]
    assert np.isfinite(expected).all()
    assert np.abs(expected[0] - expected[1]).max() > 1e-3
    assert np.abs(vectors - expected).max() <= 1e-5 * max(1, np.abs(expected).max())
