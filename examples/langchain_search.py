"""Finds dialogues with LangChain's vector store in memory: python examples/langchain_search.py [MODEL].

Needs langchain-core: pip install "hf-dialemb[langchain]". Documents hold transcripts; they are encoded as dialogues.
"""

import sys

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.vectorstores import InMemoryVectorStore

from hf_dialemb import load_dialogues
from hf_dialemb.integrations import LangChainEmbeddings, to_transcript

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

embeddings = LangChainEmbeddings(sys.argv[1] if len(sys.argv) > 1 else "all-MiniLM-L6-v2")
store = InMemoryVectorStore(embeddings)
store.add_documents(
    [
        Document(to_transcript(dialogue), id=dialogue.id, metadata={"domain": dialogue.domains[0]})
        for dialogue in load_dialogues("sample", split="dev")[:50]
    ]
)

history = [HumanMessage("I would like to fly to Athens with two bags."), AIMessage("Shall I change your ticket?")]
for document in store.similarity_search_by_vector(embeddings.embed_query(history), k=3):
    print(document.metadata["domain"], document.id, document.page_content.splitlines()[0])
for document in store.similarity_search(
    "a table for two", k=1, filter=lambda found: found.metadata["domain"] == "hotel"
):
    print(document.metadata["domain"], document.id, document.page_content.splitlines()[0])
