"""One text, one vector: whatever loads a model, and whatever the text holds."""

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

from hf_dialemb import DSEModel, load_encoder
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
