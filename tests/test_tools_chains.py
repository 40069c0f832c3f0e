"""Embeddings for LangChain and LlamaIndex, transcripts, and encoders in other libraries' batches."""

import asyncio
import pickle
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset
from datasets.fingerprint import Hasher
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModel

from hf_dialemb import integrations
from hf_dialemb.dialogue import ROLES, Dialogue, Turn
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation import load_encoder
from hf_dialemb.integrations import BatchEncoder, to_transcript
from hf_dialemb.integrations.inputs import from_transcript

with_langchain = pytest.mark.skipif(find_spec("langchain_core") is None, reason="langchain-core is not installed")
with_llama_index = pytest.mark.skipif(find_spec("llama_index") is None, reason="llama-index-core is not installed")
CHAT = [
    {"role": "user", "content": "A room, please.\nWith a bath."},
    {"role": "assistant", "content": "For how many nights?"},
    {"role": "user", "content": "Two."},
]
UNSAID = [
    {"role": "system", "content": "Be kind."},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
    {"role": "tool", "content": "many"},
]
DIALOGUE = Dialogue.from_messages(CHAT)
FORMS = [CHAT, DIALOGUE, {"messages": CHAT}, to_transcript(DIALOGUE), [*UNSAID, *CHAT]]
TURNS = st.builds(Turn, st.sampled_from(ROLES), st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip))


@pytest.fixture(scope="module")
def spec(tiny_checkpoint) -> str:
    return str(tiny_checkpoint)


@pytest.fixture(scope="module")
def expected(spec) -> list[float]:
    return load_encoder(spec).encode([DIALOGUE])[0]


@given(st.lists(TURNS, min_size=1).map(lambda turns: Dialogue(tuple(turns))))
def test_a_transcript_is_read_back_word_for_word(dialogue):
    assert from_transcript(to_transcript(dialogue)) == dialogue


@pytest.mark.parametrize(
    "text", ["a room", "user:a room", "agent: a room", "user: a room\nand a bath", "\n\nuser\n: x"]
)
def test_any_other_text_is_a_turn_of_the_user(text):
    assert from_transcript(text) == Dialogue((Turn("user", text),))


@pytest.mark.parametrize(("name", "package", "title", "extra"), [
    ("LangChainEmbeddings", "langchain_core", "LangChain", "langchain"),
    ("LlamaIndexEmbedding", "llama_index", "LlamaIndex", "llama-index"),
    ("DialembEncoder", "mteb", "MTEB", "mteb"),
    ("dialogue_tasks", "mteb", "MTEB", "mteb"),
])  # fmt: skip
def test_a_missing_package_is_named_with_its_extra(name, package, title, extra, monkeypatch):
    for module in [each for each in sys.modules if each.startswith(("hf_dialemb.integrations.", f"{package}."))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(vars(integrations), name, raising=False)  # which another test may have asked for
    with pytest.raises(InputError, match=rf'{title} is not installed; run: pip install "hf-dialemb\[{extra}\]"'):
        getattr(integrations, name)


@with_langchain
def test_langchain_reads_every_form_of_a_dialogue(spec, expected):
    from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessage, HumanMessage, SystemMessage, ToolMessage

    call = AIMessage("", tool_calls=[{"name": "rooms", "args": {}, "id": "1"}])
    unsaid = [SystemMessage("Be kind."), call, ToolMessage("many", tool_call_id="1")]
    asked, answered, last = HumanMessage(CHAT[0]["content"]), AIMessage(CHAT[1]["content"]), HumanMessage("Two.")
    forms = [
        *FORMS,
        [asked, answered, last],
        (CHAT[0], AIMessageChunk(CHAT[1]["content"]), ChatMessage("Two.", role="user")),
        {"messages": [unsaid[0], *CHAT[:2], last]},
        [unsaid[0], HumanMessage([{"type": "text", "text": CHAT[0]["content"]}]), *unsaid[1:], answered, last],
    ]
    embeddings = integrations.LangChainEmbeddings(spec, batch_size=3)
    found = embeddings.embed_documents(forms)
    np.testing.assert_allclose(found, np.tile(expected, (len(forms), 1)), atol=1e-5)
    np.testing.assert_allclose([embeddings.embed_query(form) for form in forms], found, atol=1e-5)
    assert isinstance(found[0][0], float)
    assert embeddings.embed_query(last) == embeddings.embed_query("Two.")
    assert embeddings.embed_documents([]) == []


@with_langchain
def test_langchain_embeds_in_threads_and_after_a_journey(spec, expected):
    embeddings = integrations.LangChainEmbeddings(spec)

    async def ask():
        return await asyncio.gather(embeddings.aembed_query(CHAT), embeddings.aembed_documents([CHAT, "a room"]))

    query, documents = asyncio.run(ask())
    with ThreadPoolExecutor(4) as threads:
        vectors = list(threads.map(embeddings.embed_query, [CHAT] * 8))
    pickled = pickle.dumps(embeddings)
    assert len(pickled) < 1000
    vectors += [query, documents[0], pickle.loads(pickled).embed_query(CHAT)]
    np.testing.assert_allclose(vectors, [expected] * 11, atol=1e-5)


@with_langchain
def test_langchain_keeps_dialogues_in_a_store(spec, tmp_path):
    from langchain_core.messages import HumanMessage
    from langchain_core.vectorstores import InMemoryVectorStore

    embeddings = integrations.LangChainEmbeddings(spec)
    store = InMemoryVectorStore.from_texts(["a taxi", to_transcript(DIALOGUE)], embeddings)
    store.dump(str(tmp_path / "store.json"))
    again = InMemoryVectorStore.load(str(tmp_path / "store.json"), embeddings)
    found = again.similarity_search_with_score_by_vector(embeddings.embed_query(CHAT), k=1)
    assert found[0][0].page_content.startswith("user: A room, please.")
    assert found[0][1] == pytest.approx(1)
    for wrong, sentence in (
        ([""], r"texts\[0\]: field content: got ''"),
        (["a", [HumanMessage("")]], r"texts\[1\]: messages\[0\]: field content"),
        (["a", [{"role": "system", "content": "Be kind."}]], r"texts\[1\]: field messages: got no turn"),
        ("a text", "texts: got one str"),
        ([3], r"texts\[0\]: got int"),
    ):
        with pytest.raises(InputError, match=sentence):
            embeddings.embed_documents(wrong)
    with pytest.raises(InputError, match="no/such-model"):
        integrations.LangChainEmbeddings("no/such-model")


@with_llama_index
def test_llama_index_reads_every_form_of_a_dialogue(spec, expected):
    from llama_index.core.llms import ChatMessage, TextBlock

    spoken = [ChatMessage(message["content"], role=message["role"]) for message in CHAT]
    blocks = ChatMessage(role="user", blocks=[TextBlock(text=CHAT[0]["content"])])
    unsaid = [ChatMessage("Be kind.", role="system"), ChatMessage(role="assistant"), ChatMessage("many", role="tool")]
    forms = [
        *FORMS,
        spoken,
        (CHAT[0], *spoken[1:]),
        {"messages": [unsaid[0], *CHAT[:2], spoken[2]]},
        [unsaid[0], blocks, *unsaid[1:], ChatMessage(CHAT[1]["content"], role="chatbot"), spoken[2]],
    ]
    embedding = integrations.LlamaIndexEmbedding(spec, embed_batch_size=3)

    async def ask():
        single = embedding.aget_query_embedding(CHAT), embedding.aget_text_embedding(spoken)
        return await asyncio.gather(*single, embedding.aget_text_embedding_batch(forms))

    query, text, batch = asyncio.run(ask())
    vectors = [query, text, *batch, *embedding.get_text_embedding_batch(forms)]
    for form in forms:
        vectors += [embedding.get_query_embedding(form), embedding.get_text_embedding(form)]
    np.testing.assert_allclose(vectors, [expected] * len(vectors), atol=1e-5)
    assert embedding.get_text_embedding(ChatMessage("Two.", role="user")) == embedding.get_text_embedding("Two.")


@with_llama_index
def test_llama_index_caches_travels_and_refuses(spec, expected):
    from llama_index.core.llms import ChatMessage
    from llama_index.core.schema import TextNode
    from llama_index.core.storage.kvstore import SimpleKVStore

    cache = SimpleKVStore()
    vectors = [integrations.LlamaIndexEmbedding(model_name=spec, embeddings_cache=cache).get_text_embedding(CHAT)]
    assert list(cache.get_all("embeddings")) == [to_transcript(DIALOGUE)]
    embedding = integrations.LlamaIndexEmbedding(model_name=spec)
    assert embedding.to_dict()["model_name"] == spec
    pickled = pickle.dumps(embedding)
    assert len(pickled) < 4000
    node = TextNode(text=to_transcript(DIALOGUE), metadata={"id": 3}, excluded_embed_metadata_keys=["id"])
    vectors += [pickle.loads(pickled).get_query_embedding(CHAT), embedding([node])[0].embedding]
    np.testing.assert_allclose(vectors, [expected] * 3, atol=1e-5)
    for wrong, sentence in (
        ("", "field content: got ''"),
        ([ChatMessage("Be kind.", role="system")], "field messages: got no turn"),
        ([ChatMessage("", role="user")], r"messages\[0\]: field content"),
        (3, "got int, expected a text or a dialogue"),
    ):
        with pytest.raises(InputError, match=sentence):
            embedding.get_text_embedding(wrong)
    for model, sentence in (("tfidf", "fitted on the very"), ("no/such-model", "no/such-model")):
        with pytest.raises(InputError, match=sentence):
            integrations.LlamaIndexEmbedding(model_name=model)


@pytest.mark.slow
def test_the_cache_knows_the_encoder_used_or_not_and_knows_other_weights(tiny_bert, tmp_path, sample_dialogues):
    folder = str(shutil.copytree(tiny_bert, tmp_path / "model"))
    encoder = BatchEncoder(folder)
    before = Hasher.hash(encoder)
    dataset = Dataset.from_list([dialogue.to_json() for dialogue in sample_dialogues[:6]])
    first = dataset.map(encoder, batched=True)
    assert encoder.encoder._encoder is not None
    assert Hasher.hash(encoder) == before == Hasher.hash(BatchEncoder(folder))
    assert len(pickle.dumps(encoder)) < 1000, "weights do not travel"
    assert dataset.map(BatchEncoder(folder), batched=True)._fingerprint == first._fingerprint
    model = AutoModel.from_pretrained(folder)
    model.embeddings.LayerNorm.bias.data.add_(1)
    model.save_pretrained(folder)
    assert dataset.map(BatchEncoder(folder), batched=True)._fingerprint != first._fingerprint


def test_batches_of_every_form_give_the_same_vectors(tiny_checkpoint, tiny_bert, sample_dialogues):
    encoder = BatchEncoder(str(tiny_checkpoint), output="vector")
    expected = load_encoder(str(tiny_checkpoint)).encode(sample_dialogues[:5])
    table = pa.Table.from_pylist([dialogue.to_json() for dialogue in sample_dialogues[:5]])
    frame = table.to_pandas()  # lists at every depth are arrays in it
    for batch in ({name: list(frame[name]) for name in frame}, {name: frame[name].to_numpy() for name in frame}):
        found = encoder(batch)
        assert list(found) == ["id", "messages", "domains", "vector"]
        np.testing.assert_allclose(found["vector"], expected, atol=1e-5)
    found = encoder(table)
    np.testing.assert_allclose(np.stack(found.to_pandas()["vector"]), expected, atol=1e-5)
    assert found.drop_columns("vector") == table
    texts = BatchEncoder(tiny_bert, column="text")
    assert texts({"text": pd.Series(["a room", "a taxi"])})["embedding"].shape == (2, 16)


@pytest.mark.parametrize(("column", "batch", "sentence"), [
    ("messages", {"text": ["a room"]}, r"column 'messages' is missing \(found: text\)"),
    ("messages", {"messages": ["a room", [{"role": "user"}]]}, r"messages\[1\]: messages\[0\]: field content is"),
    ("text", {"text": ["a room", ""]}, r"text\[1\]: field content: got ''"),
])  # fmt: skip
def test_mistakes_are_told_in_one_sentence(tiny_bert, column, batch, sentence):
    with pytest.raises(InputError, match=sentence):
        BatchEncoder(tiny_bert, column=column)(batch)
    for model in ("tfidf", f"{tiny_bert}@whitened"):
        with pytest.raises(InputError, match="fitted on the very dialogues"):
            BatchEncoder(model)
