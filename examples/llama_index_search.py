"""Finds dialogues with LlamaIndex's index in memory: python examples/llama_index_search.py [MODEL [FILE [QUERY]]].

Needs llama-index-core: pip install "hf-dialemb[llama-index]". Nodes hold transcripts; they are encoded as dialogues.
FILE is your own conversations, by default made-up ones, and QUERY is what you look for in them.
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

defaults = ("all-MiniLM-L6-v2", "sample", "I would like to fly to Athens with two bags.")
model, source, asked = [*sys.argv[1:], *defaults[len(sys.argv) - 1 :]]
dialogues = load_dialogues(source, split="dev")[:50] if source == "sample" else load_dialogues(source)
embedding = LlamaIndexEmbedding(model_name=model)
nodes = [
    TextNode(
        id_=dialogue.id,
        text=to_transcript(dialogue),
        metadata={"domain": " ".join(dialogue.domains)},
        excluded_embed_metadata_keys=["domain"],  # otherwise it would stand before the first turn
    )
    for dialogue in dialogues
]
index = VectorStoreIndex(nodes, embed_model=embedding)

history = [ChatMessage("How can I help you?", role="assistant"), ChatMessage(asked, role="user")]
query = QueryBundle("", embedding=embedding.get_query_embedding(history))
for found in index.as_retriever(similarity_top_k=3).retrieve(query):
    print(found.metadata["domain"], found.node_id, found.text.splitlines()[0])
domain = "hotel" if source == "sample" else " ".join(dialogues[0].domains)
of_domain = MetadataFilters(filters=[MetadataFilter(key="domain", value=domain)])
for found in index.as_retriever(similarity_top_k=1, filters=of_domain).retrieve(asked):
    print(found.metadata["domain"], found.node_id, found.text.splitlines()[0])
