"""Finds dialogues with LlamaIndex's vector index in memory: python examples/llama_index_search.py [MODEL].

Needs llama-index-core: pip install "hf-dialemb[llama-index]". Nodes hold transcripts; they are encoded as dialogues.
"""

import sys

from llama_index.core import QueryBundle, VectorStoreIndex
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from hf_dialemb import load_dialogues
from hf_dialemb.integrations import LlamaIndexEmbedding, to_transcript

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

embedding = LlamaIndexEmbedding(model_name=sys.argv[1] if len(sys.argv) > 1 else "all-MiniLM-L6-v2")
nodes = [
    TextNode(
        id_=dialogue.id,
        text=to_transcript(dialogue),
        metadata={"domain": dialogue.domains[0]},
        excluded_embed_metadata_keys=["domain"],  # otherwise it would stand before the first turn
    )
    for dialogue in load_dialogues("sample", split="dev")[:50]
]
index = VectorStoreIndex(nodes, embed_model=embedding)

history = [
    ChatMessage("I would like to fly to Athens with two bags.", role="user"),
    ChatMessage("Shall I change your ticket?", role="assistant"),
]
query = QueryBundle("", embedding=embedding.get_query_embedding(history))
for found in index.as_retriever(similarity_top_k=3).retrieve(query):
    print(found.metadata["domain"], found.node_id, found.text.splitlines()[0])
hotels = MetadataFilters(filters=[MetadataFilter(key="domain", value="hotel")])
for found in index.as_retriever(similarity_top_k=1, filters=hotels).retrieve("a table for two"):
    print(found.metadata["domain"], found.node_id, found.text.splitlines()[0])
