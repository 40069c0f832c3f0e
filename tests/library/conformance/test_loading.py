"""Options of loading and encoding, by their names in transformers and sentence-transformers."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from afresh import printed_afresh
from commands import main
from hub_server import TOKEN, run_hub
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import cos_sim
from test_backbones import with_code

from hf_dialemb import InputError, load_encoder
from hf_dialemb.encoders.load_encoder import EncoderRun

TEXTS = ["I need a cheap hotel.", "My card was stolen!", "Yes."]
DIALOGUES = [
    [{"role": "user", "content": text}, {"role": "assistant", "content": "Certainly."}]
    for text in TEXTS
]


@pytest.fixture(params=["plain", "dial2vec"])
def encoder(request, tiny_bert, tiny_checkpoint):
    return load_encoder(tiny_bert if request.param == "plain" else str(tiny_checkpoint))


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


HABITS = {  # what is called, and what it gives
    "encode(normalize_embeddings=True) - works": (
        lambda encoder: encoder.encode(DIALOGUES, normalize_embeddings=True),
        lambda encoder: unit(encoder.encode(DIALOGUES)),
    ),
    "encode(truncate_dim=k) - works; normalised after the cut": (
        lambda encoder: encoder.encode(DIALOGUES, truncate_dim=4, normalize_embeddings=True),
        lambda encoder: unit(encoder.encode(DIALOGUES)[:, :4]),
    ),
    "encode(convert_to_tensor=True) - works": (
        lambda encoder: encoder.encode(DIALOGUES, convert_to_tensor=True).cpu().numpy(),
        lambda encoder: encoder.encode(DIALOGUES),
    ),
    "encode(batch_size=..., show_progress_bar=...) - works": (
        lambda encoder: encoder.encode(DIALOGUES, batch_size=1, show_progress_bar=True),
        lambda encoder: encoder.encode(DIALOGUES, batch_size=8, show_progress_bar=False),
    ),
    "encode of one string - encode_utterances('...') gives (D,)": (
        lambda encoder: encoder.encode_utterances(TEXTS[0]),
        lambda encoder: encoder.encode_utterances(TEXTS)[0],
    ),
    "model.similarity(a, b) - works: cosines": (
        lambda encoder: encoder.similarity(encoder.encode(DIALOGUES), encoder.encode(DIALOGUES)),
        lambda encoder: cos_sim(encoder.encode(DIALOGUES), encoder.encode(DIALOGUES)),
    ),
}


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        pytest.param(*calls, marks=pytest.mark.habit(*habit.split(" - ")), id=habit.split(" - ")[0])
        for habit, calls in HABITS.items()
    ],
)
def test_an_option_of_encode_does_what_it_says(encoder, got, expected):
    vectors = np.asarray(got(encoder))
    assert vectors.shape == np.asarray(expected(encoder)).shape
    np.testing.assert_allclose(vectors, expected(encoder), atol=1e-5)


@pytest.mark.habit("load(dtype=..., attn_implementation=..., device=...)", "works")
def test_models_load_in_a_dtype_with_an_attention_on_a_device(tiny_bert):
    exact = load_encoder(tiny_bert, attn_implementation="eager", device="cpu").encode_utterances(
        TEXTS
    )
    assert np.abs(exact - SentenceTransformer(tiny_bert, device="cpu").encode(TEXTS)).max() <= 1e-5
    rough = load_encoder(tiny_bert, dtype=torch.bfloat16).encode_utterances(TEXTS)
    assert 1e-6 < np.abs(rough - exact).max() < 0.1 * np.abs(exact).max()
    assert np.array_equal(rough, load_encoder(tiny_bert, dtype="bfloat16").encode_utterances(TEXTS))


@pytest.mark.habit(
    "--batch-size, --device, --dtype, --revision on the command line", "wherever there is --model"
)
def test_commands_take_the_options_of_loading(tiny_bert, tmp_path, printed, capsys):
    options = ["--batch-size", "2", "--device", "cpu", "--dtype", "float32"]
    calls, vectors = tmp_path / "calls.jsonl", tmp_path / "vectors.parquet"
    calls.write_text(
        "".join(json.dumps({"id": text, "messages": DIALOGUES[0]}) + "\n" for text in TEXTS)
    )
    printed("embed", calls, "--model", tiny_bert, "--output", vectors, *options)
    for command in ("search", "topics", "flow", "index", "evaluate", "embed"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        text = capsys.readouterr().out
        assert [name for name in (*options[::2], "--revision") if name not in text] == [], command


REVISIONS = """
import sys
import numpy as np
from hf_dialemb import load_encoder
from hf_dialemb.errors import InputError
cache, commit, file = sys.argv[1:]
vectors = {}
for name in ("org/plain", "org/sentence", "org/dial2vec"):
    encoders = {
        "tag": load_encoder(name, revision="v1", token="hf_other", cache_dir=cache),
        "main": load_encoder(name),
    }
    assert encoders["tag"].spec == name
    assert encoders["tag"].source.options["revision"] == "v1"
    fingerprints = {way: encoder.fingerprint for way, encoder in encoders.items()}
    assert fingerprints["tag"] != fingerprints["main"]
    for way, encoder in encoders.items():
        vectors[f"{name} {way}"] = encoder.encode_utterances(TEXTS)
commit = load_encoder("org/plain", revision=commit)
assert commit.fingerprint == load_encoder("org/plain", revision="v1").fingerprint
np.savez(file, commit=commit.encode_utterances(TEXTS), **vectors)
try:
    load_encoder("org/plain", revision="v2")
    raise SystemExit("v2 was loaded")
except InputError as error:
    assert "RevisionNotFound" in str(error), error
"""


@pytest.mark.slow
@pytest.mark.habit("load(revision=..., token=..., cache_dir=...)", "works")
def test_models_load_at_a_revision_with_a_token_into_a_cache(tiny_bert, tiny_checkpoint, tmp_path):
    other = transformers.AutoModel.from_pretrained(tiny_bert)
    for parameter in other.parameters():
        parameter.data.mul_(1.5)
    other.save_pretrained(tmp_path / "later")
    folders = {
        "plain": Path(tiny_bert),
        "sentence": tmp_path / "sentence",
        "dial2vec": tiny_checkpoint,
    }
    SentenceTransformer(tiny_bert, device="cpu").save(str(folders["sentence"]))
    with run_hub() as hub:
        commits = {
            name: hub.fill("models", f"org/{name}", folder, "v1")
            for name, folder in folders.items()
        }
        for name, folder in folders.items():
            changed = shutil.copytree(folder, tmp_path / f"changed-{name}")
            if name == "dial2vec":
                (changed / "README.md").write_text("Later.")
            else:
                shutil.copy(tmp_path / "later" / "model.safetensors", changed)
            hub.fill("models", f"org/{name}", changed)
        words = [tmp_path / "cache", commits["plain"].oid, tmp_path / "vectors.npz"]
        environment = hub.environment(tmp_path / "home")
        printed_afresh(REVISIONS.replace("TEXTS", repr(TEXTS)), *words, environment=environment)
    assert hub.tokens >= {TOKEN, "hf_other"}
    assert {path.name for path in (tmp_path / "cache").glob("models--*")} == {
        f"models--org--{name}" for name in folders
    }
    vectors = np.load(tmp_path / "vectors.npz")
    for name, folder in folders.items():
        expected = load_encoder(folder).encode_utterances(TEXTS)
        assert np.abs(vectors[f"org/{name} tag"] - expected).max() <= 1e-6, name
        assert name == "dial2vec" or np.abs(vectors[f"org/{name} main"] - expected).max() > 0.01, (
            name
        )
    assert np.array_equal(vectors["commit"], vectors["org/plain tag"])


@pytest.mark.habit("load(trust_remote_code=True)", "works; without it, refused in one sentence")
def test_code_beside_a_model_runs_only_if_it_is_trusted(tiny_bert, tmp_path):
    folder = with_code(tmp_path / "own", tiny_bert, "own_bert")
    with pytest.raises(InputError, match="trust_remote_code=True"):
        load_encoder(folder)
    vectors = load_encoder(folder, trust_remote_code=True).encode_utterances(TEXTS)
    assert np.abs(vectors - 2 * load_encoder(tiny_bert).encode_utterances(TEXTS)).max() <= 1e-5


@pytest.mark.habit("load(device=None)", "the accelerator that torch has, else the CPU")
def test_the_accelerator_is_the_default_device(monkeypatch):
    from hf_dialemb.storage.hardware import checked_device

    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert checked_device(None) == "cpu"
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    for kind in ("cuda", "mps", "xpu"):
        monkeypatch.setattr(
            torch.accelerator, "current_accelerator", lambda kind=kind: torch.device(kind)
        )
        assert (checked_device(None), checked_device(f"{kind}:0"), checked_device("cpu")) == (
            kind,
            f"{kind}:0",
            "cpu",
        )
    with pytest.raises(InputError, match="this machine has cpu and xpu"):
        checked_device("tpu")


@pytest.mark.habit("an option of loading that a model does not take", "refused in one sentence")
@pytest.mark.parametrize(
    ("model", "options", "reason"),
    [
        ("tfidf", {"device": "cuda"}, "got device='cuda'"),
        ("dialogue-static", {"attn_implementation": "eager"}, "got attn_implementation='eager'"),
        ("dialogue-static", {"dtype": "float16"}, "got dtype float16"),
        ("dialogue-static", {"revision": "v1"}, "got revision 'v1', expected a Hub id"),
        ("org/name", {"dtype": "int4"}, "expected one of float32, bfloat16, float16"),
        ("org/name", {"batch_size": 0}, "expected a value at least 1"),
        ("org/name", {"level": "turns"}, "level: got 'turns', expected one of dialogue, utt"),
        ("tfidf", {"level": "utterances"}, "reads whole dialogues"),
        ("tfidf", {"dtype": "bfloat16"}, "expected a transformer; leave dtype out"),
        (EncoderRun(Path("nowhere")), {"revision": "v1"}, "nowhere"),
    ],
)
def test_options_without_an_effect_are_refused(model, options, reason):
    with pytest.raises(InputError, match=reason) as refused:
        load_encoder(model, **options)
    assert "\n" not in str(refused.value)


@pytest.mark.habit("load(a model in memory, dtype=...)", "refused: it is loaded already")
def test_models_in_memory_take_no_options_of_loading(encoder):
    with pytest.raises(InputError, match="Encoder in memory with the option dtype of loading"):
        load_encoder(encoder, dtype="bfloat16")
    assert load_encoder(encoder, batch_size=4) is encoder


def mean_of_tokens(source: str | Path) -> np.ndarray:
    model, tokenizer = (
        transformers.AutoModel.from_pretrained(source).eval(),
        transformers.AutoTokenizer.from_pretrained(source),
    )
    with torch.inference_mode():
        states = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state for text in TEXTS]
    return np.stack([state[0].mean(0).numpy() for state in states])


def test_dse_loads_from_its_pickle_of_tensors_unless_that_calls_something(tiny_bert, tmp_path):
    """A folder as ``aws-ai/dse-bert-base``.

    A pickle with the backbone's prefix and the contrastive head.
    """
    folder = Path(shutil.copytree(tiny_bert, tmp_path / "dse"))
    state = transformers.AutoModel.from_pretrained(tiny_bert).state_dict()
    old = {
        f"bert.{key}".replace("LayerNorm.weight", "LayerNorm.gamma"): value
        for key, value in state.items()
    }
    head = {
        "contrast_head.0.weight": torch.randn(16, 16),
        "contrast_head.2.weight": torch.randn(8, 16),
    }
    torch.save(
        {**old, "bert.embeddings.position_ids": torch.arange(512)[None], **head},
        folder / "pytorch_model.bin",
    )
    (folder / "model.safetensors").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["PSCBert"]}))
    vectors = load_encoder(str(folder)).encode_utterances(TEXTS)
    assert np.abs(vectors - mean_of_tokens(tiny_bert)).max() < 1e-5

    class Calls:
        def __reduce__(self):
            return eval, (f"open({str(tmp_path / 'trace')!r}, 'w').close()",)

    torch.save({"bert.x": Calls()}, folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="cannot be read"):
        load_encoder(str(folder)).encode_utterances(TEXTS)
    assert not (tmp_path / "trace").exists()


def test_tod_bert_loads_without_its_language_model_head(tiny_bert, tmp_path):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.add_tokens(["[sys]", "[usr]"])
    tokenizer.save_pretrained(tmp_path)
    torch.manual_seed(6)
    transformers.BertForMaskedLM(
        transformers.AutoConfig.from_pretrained(tiny_bert, vocab_size=len(tokenizer))
    ).save_pretrained(tmp_path)
    assert (
        np.abs(
            load_encoder(str(tmp_path)).encode_utterances(TEXTS) - mean_of_tokens(tmp_path)
        ).max()
        < 1e-5
    )
