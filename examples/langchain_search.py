"""Find dialogues with LangChain's vector store in memory.

Python examples/langchain_search.py [MODEL [FILE [QUERY]]].

Needs langchain-core. `DialogueEmbeddings` is for you to copy: documents hold transcripts, which are
encoded as dialogues. FILE holds your own conversations, by default made-up ones, and QUERY is what
you look for in them.
"""

import sys

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from hf_dialemb import Dialogue, load_dialogues, load_encoder
from hf_dialemb.integrations import to_transcript
from hf_dialemb.integrations.inputs import from_transcript

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))


class DialogueEmbeddings(Embeddings):
    """Embed transcripts and plain texts."""

    def __init__(self, model):
        self.encoder = load_encoder(model)

    def embed_documents(self, texts):
        return self.encoder.encode([from_transcript(text) for text in texts]).tolist()

    def embed_query(self, text):
        return self.embed_documents([text])[0]


defaults = ("all-MiniLM-L6-v2", "sample", "I would like to fly to Athens with two bags.")
model, source, query = [*sys.argv[1:], *defaults[len(sys.argv) - 1 :]]
dialogues = (
    load_dialogues(source, split="dev")[:50] if source == "sample" else load_dialogues(source)
)
store = InMemoryVectorStore(DialogueEmbeddings(model))
store.add_documents(
    [
        Document(
            to_transcript(dialogue), id=dialogue.id, metadata={"domain": " ".join(dialogue.domains)}
        )
        for dialogue in dialogues
    ]
)

messages = [
    {"role": "assistant", "content": "How can I help you?"},
    {"role": "user", "content": query},
]
for document in store.similarity_search(to_transcript(Dialogue.from_messages(messages)), k=3):
    print(document.metadata["domain"], document.id, document.page_content.splitlines()[0])
domain = "hotel" if source == "sample" else " ".join(dialogues[0].domains)
for document in store.similarity_search(
    query, k=1, filter=lambda document: document.metadata["domain"] == domain
):
    print(document.metadata["domain"], document.id, document.page_content.splitlines()[0])
