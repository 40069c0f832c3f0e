"""Answer questions from a memory of turns with LangChain's retrievers.

Python examples/langchain_search.py [MODEL [FILE [QUERY]]].

Needs langchain-core. `TurnRetriever` is for you to copy: it searches a `TurnIndex`, and its scope
is what `TurnIndex.search` takes. FILE holds your own conversations, by default made-up ones.
"""

import sys
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from hf_dialemb import TurnIndex, load_dialogues

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))


class TurnRetriever(BaseRetriever):
    """Find turns of a memory, within a scope such as ``{"user": "anna"}``."""

    memory: Any  # a TurnIndex
    top: int = 3
    scope: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(self, query, *, run_manager):
        hits = self.memory.search(query, self.top, **self.scope)
        return [
            Document(hit.text, id=str(hit.row), metadata={"dialogue": hit.id, "score": hit.score})
            for hit in hits
        ]


defaults = ("dialogue-static", "sample", "How many bags may I take on the plane?")
model, source, query = [*sys.argv[1:], *defaults[len(sys.argv) - 1 :]]
split = {"split": "dev"} if source == "sample" else {}
memory = TurnIndex(encoder=model)
memory.add(load_dialogues(source, **split)[:50])
for document in TurnRetriever(memory=memory).invoke(query):
    print(document.metadata["dialogue"], document.page_content)
last = document.metadata["dialogue"]
for document in TurnRetriever(memory=memory, top=1, scope={"dialogue": last}).invoke(query):
    print(document.metadata["dialogue"], document.page_content)
