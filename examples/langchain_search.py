"""Finds dialogues with LangChain's vector store in memory: python examples/langchain_search.py [MODEL [FILE [QUERY]]].

Needs langchain-core: pip install "hf-dialemb[langchain]". Documents hold transcripts; they are encoded as dialogues.
FILE is your own conversations, by default made-up ones, and QUERY is what you look for in them.
"""

import sys

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.vectorstores import InMemoryVectorStore

from hf_dialemb import load_dialogues
from hf_dialemb.integrations import LangChainEmbeddings, to_transcript

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

defaults = ("all-MiniLM-L6-v2", "sample", "I would like to fly to Athens with two bags.")
model, source, query = [*sys.argv[1:], *defaults[len(sys.argv) - 1 :]]
dialogues = load_dialogues(source, split="dev")[:50] if source == "sample" else load_dialogues(source)
embeddings = LangChainEmbeddings(model)
store = InMemoryVectorStore(embeddings)
store.add_documents(
    [
        Document(to_transcript(dialogue), id=dialogue.id, metadata={"domain": " ".join(dialogue.domains)})
        for dialogue in dialogues
    ]
)

history = [AIMessage("How can I help you?"), HumanMessage(query)]
for document in store.similarity_search_by_vector(embeddings.embed_query(history), k=3):
    print(document.metadata["domain"], document.id, document.page_content.splitlines()[0])
domain = "hotel" if source == "sample" else " ".join(dialogues[0].domains)
for document in store.similarity_search(query, k=1, filter=lambda found: found.metadata["domain"] == domain):
    print(document.metadata["domain"], document.id, document.page_content.splitlines()[0])
