"""Sets for semantic retrieval, built from sentences with intents as DialogueCSE built its own (section 5.1.2).

A sentence is the text of a turn that always comes with one and the same intent. Each retrieves `HITS` others by BM25;
the first `RELEVANT` of its own intent are relevant, the first `OTHER` of other intents are to be ranked below them.
So all candidates share words with the query, and words alone do not tell them apart. The paper has people check the
intents and limits relevant ones to 30; the limit of 40 on others is that of its published files, all of whose queries
come with full lists of them, while here one of each is enough.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ...corpora.examples import RetrievalQuery
from ...dialogue import Dialogue
from ...errors import InputError

SENTENCES = 7_000  # how many sentences are taken at most, a fixed random sample; about as many as the paper's sets have
HITS = 100  # how many sentences BM25 retrieves for each
RELEVANT, OTHER = 30, 40  # how many of the hits are kept at most
OUT_OF_SCOPE = "oos"  # the label of sentences that have no intent in common
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")  # Chinese has no blanks: each of its characters is a word


def retrieval_queries(dialogues: Iterable[Dialogue]) -> list[RetrievalQuery]:
    """Build a query for each sentence of turns with intents whose hits are of its own and of other intents.

    They come in alphabetical order, in which equal scores of BM25 are resolved too; that of the dialogues does not
    matter.
    """
    try:
        import bm25s
    except ImportError:
        raise InputError('semantic-retrieval: the package bm25s is missing; pip install "hf-dialemb[papers]"') from None

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # its importing lets it announce each index
    intents = _sentences(dialogues)
    texts = sorted(intents)
    if len(texts) > SENTENCES:
        chosen = np.sort(np.random.default_rng(0).choice(len(texts), SENTENCES, replace=False))
        texts = [texts[row] for row in chosen]
    if not texts:
        return []
    words = [_WORD.findall(text.lower()) for text in texts]
    index = bm25s.BM25()  # Lucene's form of BM25 with k1 = 1.5 and b = 0.75
    index.index(words, show_progress=False)
    queries = []
    for row, text in enumerate(texts):
        scores = index.get_scores(words[row])
        scores[row] = 0
        hits = [texts[hit] for hit in _best(scores)]
        relevant = [hit for hit in hits if intents[hit] == intents[text]][:RELEVANT]
        other = [hit for hit in hits if intents[hit] != intents[text]][:OTHER]
        if relevant and other:
            queries.append(RetrievalQuery(text, tuple(relevant), tuple(other), label=intents[text]))
    return queries


def _best(scores: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the positions of the `HITS` greatest positive scores; of equal scores the first come first."""
    least = np.partition(scores, -HITS)[-HITS] if len(scores) > HITS else 0
    hits = np.flatnonzero((scores >= least) & (scores > 0))
    best: NDArray[np.intp] = hits[np.argsort(-scores[hits], kind="stable")][:HITS]
    return best


def _sentences(dialogues: Iterable[Dialogue]) -> dict[str, str]:
    """Map the texts with words to their intent, if they have a single intent wherever they occur."""
    by_text = defaultdict(set)
    for dialogue in dialogues:
        for turn in dialogue.turns:
            if turn.intents:
                by_text[turn.content].add(turn.intents)
    return {
        text: next(iter(intents))[0]
        for text, intents in by_text.items()
        if len(intents) == 1 and len(next(iter(intents))) == 1 and (OUT_OF_SCOPE,) not in intents and _WORD.search(text)
    }
