"""One text, one vector: whatever loads a model, whatever the text holds, and behind each prompt."""

from functools import cache

import numpy as np
import pytest
import torch
from exports import save
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import StaticEmbedding
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer

from hf_dialemb import Dialogue, DSEModel, InputError, Turn, load_encoder
from hf_dialemb.encoders.embedding_cache import RememberingEncoder
from hf_dialemb.encoders.load_encoder import EncoderRun
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint
from hf_dialemb.storage.pretrained import FOLDER, shipped

CONTROL = ["[UNK]", "[MASK]", "[SEP]", "[CLS]", "[PAD]", "<s>", "</s>", "<mask>", "<unk>", "[ SEP]"]
WORDS = [
    "my card was stolen",
    "hotel",
    "Größe?",
    "北京",
    "مرحبا",
    "👍🏽",
    "\u200b",
    "\x00",
    " \n\t",
]
TEXTS = st.one_of(
    st.lists(st.sampled_from(CONTROL + WORDS), max_size=8).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.builds(str.__mul__, st.sampled_from(["hotel ", "北", "[SEP]", "a"]), st.integers(0, 300)),
)


def through_auto_model(folder):
    """Embed texts by transformers alone, as the mean of their tokens."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)

    def embed(texts):
        batch = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        with torch.no_grad():
            states = model.eval()(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1)
        return ((states * mask).sum(1) / mask.sum(1)).numpy()

    return embed


def doors_of(backbone, folder):
    """Return functions that embed texts by a run over a backbone and by its export."""
    run, published = str(folder / "run"), folder / "published"
    save(DSEModel.from_backbone(backbone, encoding_tokens=64), run)
    published.mkdir()
    write_checkpoint(*load_checkpoint(run), published)
    theirs = SentenceTransformer(str(published), device="cpu")
    return {
        "run": load_encoder(run).encode_utterances,
        "export": load_encoder(published).encode_utterances,
        "memory": load_encoder(theirs).encode_utterances,
        "SentenceTransformer": theirs.encode,
        "AutoModel": through_auto_model(published),
    }


def agree(doors, texts, tolerance=1e-5):
    vectors = {name: np.asarray(embed(texts), dtype=np.float32) for name, embed in doors.items()}
    first = next(iter(vectors.values()))
    for name, others in vectors.items():
        differing = np.abs(others - first).max(axis=1) > tolerance * max(1, np.abs(first).max())
        assert not differing.any(), (name, [texts[row] for row in differing.nonzero()[0]][:3])


@cache
def drawn(count):
    """Return texts of every kind, always the same."""
    texts = []

    @seed(0)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(TEXTS)
    def draw(text):
        texts.append(text)

    draw()
    return texts


def test_a_dialogue_has_one_vector_by_every_door(tiny_checkpoint, tiny_export):
    theirs = SentenceTransformer(str(tiny_export), device="cpu")
    tokenizer = AutoTokenizer.from_pretrained(tiny_export)
    model = AutoModel.from_pretrained(tiny_export)

    def by_template(texts):
        chats = [[{"role": "user", "content": text}] for text in texts]
        options = {"return_dict": True, "return_tensors": "pt", "padding": True}
        with torch.no_grad():
            batch = tokenizer.apply_chat_template(chats, **options)
            return model.eval()(**batch).pooler_output.numpy()

    doors = {
        "run": load_encoder(str(tiny_checkpoint)).encode_utterances,
        "export": load_encoder(str(tiny_export)).encode_utterances,
        "SentenceTransformer": theirs.encode,
        "AutoModel": by_template,
    }
    agree(doors, [text for text in [*CONTROL, *WORDS, *drawn(60)] if text.strip()])


@pytest.mark.habit("one text by run, export, SentenceTransformer, AutoModel", "one vector, 1e-5")
@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["bert", "roberta", "mpnet"])
def test_a_text_has_one_vector_by_every_door(name, count, tiny_backbones, tmp_path):
    agree(doors_of(tiny_backbones[name], tmp_path), [*CONTROL, *WORDS, "", *drawn(count)])


def test_a_table_gives_the_vectors_of_sentence_transformers(tiny_bert, tmp_path):
    tokenizer = Tokenizer.from_file(f"{tiny_bert}/tokenizer.json")
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")
    model.save(str(tmp_path))
    shipped_table = str(FOLDER / "dialogue-static")
    for theirs in (model, SentenceTransformer(shipped_table, device="cpu")):
        path = str(tmp_path) if theirs is model else shipped_table
        agree({"ours": load_encoder(path).encode_utterances, "theirs": theirs.encode}, drawn(200))


def test_in_bfloat16_a_text_has_one_vector_to_a_hundredth(tiny_bert):
    exact, rough = load_encoder(tiny_bert), load_encoder(tiny_bert, dtype="bfloat16")
    doors = {"float32": exact.encode_utterances, "bfloat16": rough.encode_utterances}
    agree(doors, drawn(200), 1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in shipped() if name.endswith("minilm")])
def test_a_text_has_one_vector_by_every_door_of_a_shipped_encoder(name):
    encoder = load_encoder(name)
    theirs = SentenceTransformer(encoder.source.path, device="cpu")
    agree({"ours": encoder.encode_utterances, "theirs": theirs.encode}, drawn(200))


PROMPTS = {"query": "query: ", "document": "passage: ", "topic": "about "}
ASKED = ["I need a cheap hotel.", "My card was stolen!"]
DIALOGUE = Dialogue((Turn("user", ASKED[0]), Turn("assistant", ASKED[1])))


class Recording:
    """Keeps the texts that it is given."""

    prompts, default_prompt_name = PROMPTS, "topic"

    def encode_utterances(self, texts):
        self.given = list(texts)
        return np.eye(len(texts), 4, dtype=np.float32) + 1


@pytest.mark.habit("encode_query, encode_document, prompt=, prompt_name=", "as in that library")
@pytest.mark.parametrize(
    ("way", "given", "options", "expected"),
    [
        ("encode", [DIALOGUE], {}, ["about I need a cheap hotel. My card was stolen!"]),
        ("encode_utterances", ASKED[0], {}, ["about I need a cheap hotel."]),
        ("encode_utterances", ASKED[:1], {"prompt": ""}, ASKED[:1]),
        ("encode_utterances", ASKED[:1], {"prompt_name": "query"}, ["query: " + ASKED[0]]),
        ("encode_query", ASKED[0], {}, ["query: " + ASKED[0]]),
        ("encode_query", [DIALOGUE], {"prompt": "q "}, ["q " + " ".join(ASKED)]),
        ("encode_document", ASKED, {}, ["passage: " + text for text in ASKED]),
        ("encode_turns", [DIALOGUE], {}, ["passage: " + text for text in ASKED]),
    ],
)
def test_texts_stand_behind_the_prompt_of_their_use(way, given, options, expected):
    stub = Recording()
    getattr(load_encoder(stub), way)(given, **options)
    assert stub.given == expected


@pytest.fixture(scope="module")
def prompted(tiny_bert, tmp_path_factory):
    """A model with prompts, a run over it, and that one's published form."""
    folders = [tmp_path_factory.mktemp(name) for name in ("base", "run", "published")]
    base, run, published = folders
    prompts = {"prompts": PROMPTS, "default_prompt_name": "topic"}
    SentenceTransformer(tiny_bert, device="cpu", **prompts).save(str(base))
    save(DSEModel.from_backbone(str(base)), run)
    write_checkpoint(*load_checkpoint(str(run)), published)
    return [str(folder) for folder in folders]


@pytest.mark.habit("a model's prompts and default_prompt_name", "kept by training and export")
@pytest.mark.parametrize("place", range(3))
def test_prompts_give_the_vectors_of_sentence_transformers(place, prompted):
    theirs = SentenceTransformer(prompted[place if place != 1 else 2], device="cpu")
    ours = [load_encoder(prompted[place])]
    ours += [load_encoder(theirs)] if place != 1 else []
    for encoder in ours:
        assert {name: encoder.prompts[name] for name in PROMPTS} == PROMPTS
        for way in ("encode_query", "encode_document"):
            assert np.abs(getattr(encoder, way)(ASKED) - getattr(theirs, way)(ASKED)).max() <= 1e-5
        assert np.abs(encoder.encode_utterances(ASKED) - theirs.encode(ASKED)).max() <= 1e-5


@pytest.mark.habit("vectors of one text behind two prompts", "are never taken for one another")
@pytest.mark.parametrize("form", [ASKED, [DIALOGUE]])
def test_kept_vectors_know_their_prompt(form, prompted, tmp_path):
    plain = load_encoder(prompted[0])
    for _ in range(2):
        kept = RememberingEncoder(EncoderRun(prompted[0]), tmp_path)
        for way in ("encode_query", "encode_document"):
            np.testing.assert_allclose(
                getattr(kept, way)(form), getattr(plain, way)(form), atol=1e-5
            )


@pytest.mark.habit("encode(precision=, device=, convert_to_numpy=False)", "as in that library")
@pytest.mark.parametrize("name", ["base", "dialogue-static"])
def test_options_of_encoding_have_their_effects(name, prompted):
    encoder = load_encoder(prompted[0] if name == "base" else name)
    theirs = SentenceTransformer(encoder.source.path, device="cpu")
    texts = [f"{text} {number}" for text in ASKED for number in range(9)]
    for precision in ("float32", "uint8", "int8", "binary", "ubinary"):
        expected = theirs.encode(texts, precision=precision)
        vectors = encoder.encode_utterances(texts, precision=precision, device=torch.device("cpu"))
        assert vectors.dtype == expected.dtype
        assert np.isclose(vectors, expected, atol=1e-5).mean() >= 0.99
    parts = encoder.encode_utterances(texts, convert_to_numpy=False)
    assert all(isinstance(part, torch.Tensor) for part in parts)
    pairs = encoder.similarity_pairwise(parts[0], parts[1])
    assert float(pairs) == pytest.approx(float(encoder.similarity(parts[0], parts[1])), abs=1e-6)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"prompt_name": "passage"}, "expected one of the prompts of .*: query, document, topic"),
        ({"precision": "int4"}, "expected one of float32, int8"),
        ({"batch_size": -1}, "batch_size: got -1, expected a value at least 1"),
        ({"batch_size": 0}, "batch_size: got 0, expected a value at least 1"),
        ({"truncate_dim": 17}, "truncate_dim: got 17, expected a value between 1 and 16"),
        ({"device": "tpu"}, "device: got 'tpu'"),
    ],
)
def test_options_that_do_not_suit_are_refused(options, reason, prompted):
    with pytest.raises(InputError, match=reason):
        load_encoder(prompted[0]).encode_utterances(ASKED, **options)


def test_a_model_of_dialogues_takes_no_prompt(tiny_checkpoint):
    with pytest.raises(InputError, match=r"prompt: got 'query: ', but .* as they are"):
        load_encoder(str(tiny_checkpoint)).encode([DIALOGUE], prompt="query: ")
