"""Answer questions from a memory of turns with LlamaIndex's retrievers.

Python examples/llama_index_search.py [MODEL [FILE [QUERY]]].

Needs llama-index-core. `TurnRetriever` is for you to copy: it searches a `TurnIndex`, and its scope
is what `TurnIndex.search` takes. FILE holds your own conversations, by default made-up ones.
"""

import sys

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from hf_dialemb import TurnIndex, load_dialogues

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))


class TurnRetriever(BaseRetriever):
    """Find turns of a memory, within a scope such as ``user="anna"``."""

    def __init__(self, memory, top=3, **scope):
        self.memory = memory
        self.top = top
        self.scope = scope
        super().__init__()

    def _retrieve(self, query_bundle):
        hits = self.memory.search(query_bundle.query_str, self.top, **self.scope)
        return [
            NodeWithScore(
                node=TextNode(id_=str(hit.row), text=hit.text, metadata={"dialogue": hit.id}),
                score=hit.score,
            )
            for hit in hits
        ]


defaults = ("dialogue-static", "sample", "How many bags may I take on the plane?")
model, source, query = [*sys.argv[1:], *defaults[len(sys.argv) - 1 :]]
split = {"split": "dev"} if source == "sample" else {}
memory = TurnIndex(encoder=model)
memory.add(load_dialogues(source, **split)[:50])
for hit in TurnRetriever(memory).retrieve(query):
    print(hit.metadata["dialogue"], hit.text)
last = hit.metadata["dialogue"]
for hit in TurnRetriever(memory, top=1, dialogue=last).retrieve(query):
    print(hit.metadata["dialogue"], hit.text)
