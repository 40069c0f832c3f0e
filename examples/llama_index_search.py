"""Find dialogues with LlamaIndex's index in memory.

Python examples/llama_index_search.py [MODEL [FILE [QUERY]]].

Needs llama-index-core. `DialogueEmbedding` is for you to copy: nodes hold transcripts, which are
encoded as dialogues. FILE holds your own conversations, by default made-up ones, and QUERY is what
you look for in them.
"""

import sys

from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from hf_dialemb import Dialogue, load_dialogues, load_encoder
from hf_dialemb.encoders import Encoder
from hf_dialemb.integrations import to_transcript
from hf_dialemb.integrations.inputs import from_transcript

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))


class DialogueEmbedding(BaseEmbedding):
    """Embed transcripts and plain texts."""

    _encoder: Encoder = PrivateAttr()

    def __init__(self, model):
        super().__init__(model_name=model)
        self._encoder = load_encoder(model)

    def _get_text_embeddings(self, texts):
        return self._encoder.encode([from_transcript(text) for text in texts]).tolist()

    def _get_text_embedding(self, text):
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query):
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


defaults = ("all-MiniLM-L6-v2", "sample", "I would like to fly to Athens with two bags.")
model, source, asked = [*sys.argv[1:], *defaults[len(sys.argv) - 1 :]]
dialogues = (
    load_dialogues(source, split="dev")[:50] if source == "sample" else load_dialogues(source)
)
nodes = [
    TextNode(
        id_=dialogue.id,
        text=to_transcript(dialogue),
        metadata={"domain": " ".join(dialogue.domains)},
        excluded_embed_metadata_keys=["domain"],  # otherwise it would stand before the first turn
    )
    for dialogue in dialogues
]
index = VectorStoreIndex(nodes, embed_model=DialogueEmbedding(model))

messages = [
    {"role": "assistant", "content": "How can I help you?"},
    {"role": "user", "content": asked},
]
for hit in index.as_retriever(similarity_top_k=3).retrieve(
    to_transcript(Dialogue.from_messages(messages))
):
    print(hit.metadata["domain"], hit.node_id, hit.text.splitlines()[0])
domain = "hotel" if source == "sample" else " ".join(dialogues[0].domains)
of_domain = MetadataFilters(filters=[MetadataFilter(key="domain", value=domain)])
for hit in index.as_retriever(similarity_top_k=1, filters=of_domain).retrieve(asked):
    print(hit.metadata["domain"], hit.node_id, hit.text.splitlines()[0])
