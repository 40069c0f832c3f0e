"""Sentences by their cosines (DialogueCSE, section 5.1.2): similarity, and retrieval.

For retrieval a corpus of kind retrieval gives the candidates. From the intents of any other they
are built as DialogueCSE built its own (section 5.1.2): a sentence, which always comes with the same
intent, retrieves `HITS` others by BM25. The first `RELEVANT` of its intent are relevant, and the
first `OTHER` are to be ranked below them. So all candidates share words with the query. The paper
has people check the intents and limits relevant ones to 30; the limit of 40 on others is that of
its files, whose queries have full lists, while here one of each is enough.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import pearsonr, spearmanr

from ...data import load_examples
from ...dialogue import Dialogue
from ...encoders import Encoder
from ...errors import InputError
from ...evaluation.results.rows import Row
from ...evaluation.tasks.task import CorpusPart, Problem, item_percentage, percentage
from ...evaluation.tasks.task_texts import TextVectors, row_cosines
from ...metrics.ranking import ranking_scores
from ..corpora.sentence_sets import RetrievalQuery

logger = logging.getLogger(__name__)


class Ranking(NamedTuple):
    """A query and what it ranks: distinct sentences, first the relevant ones.

    At least one is and one is not.
    """

    text: str
    candidates: tuple[str, ...]
    relevant: int


def _examples(part: CorpusPart) -> list[Any]:
    """Load the items of a corpus of another kind."""
    items = load_examples(part.place, part.data_dir, part.split, strict=True)
    return part.loaded.setdefault(part.split, items)


def load_scored_pairs(part: CorpusPart) -> Problem:
    """Load pairs of sentences that people scored (DialogueCSE, section 5.1.2)."""
    pairs = part.sample([pair for pair in _examples(part) if pair.score is not None])
    scores = [pair.score for pair in pairs]
    if len(set(scores)) < 2:
        raise part.error(
            f"got {len(pairs)} pairs with {len(set(scores))} different scores, expected at least "
            "two; choose a corpus "
            "of scored pairs or raise the limit"
        )

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        first = [pair.first for pair in pairs]
        second = [pair.second for pair in pairs]
        vectors = TextVectors(encoder, [*first, *second])
        cosines = row_cosines(vectors.of(first), vectors.of(second))
        constant = cosines.min() == cosines.max()
        if constant:
            logger.warning(
                "All cosines are equal: their correlation with the scores is undefined and counts "
                "as 0"
            )
        return [
            percentage(
                "dialogue-sts",
                name,
                "",
                [0.0 if constant else float(correlate(cosines, scores).statistic)],
            )
            for name, correlate in (("spearman", spearmanr), ("pearson", pearsonr))
        ]

    return Problem({"pairs": len(pairs)}, measure)


def rankings_of(queries: Sequence[RetrievalQuery]) -> list[Ranking]:
    """Leave out what occurs twice, and queries that are left with candidates of one kind."""
    results = []
    for query in queries:
        relevant = [text for text in dict.fromkeys(query.relevant) if text != query.text]
        other = [
            text
            for text in dict.fromkeys(query.other)
            if text != query.text and text not in query.relevant
        ]
        if relevant and other:
            results.append(Ranking(query.text, (*relevant, *other), len(relevant)))
    return results


def load_rankings(part: CorpusPart) -> Problem:
    """Load sentences with candidates to rank."""
    config: dict[str, Any] = {}
    if part.kind == "retrieval":
        queries = _examples(part)
    else:
        queries = retrieval_queries(part.dialogues())
        config = {"sentences": SENTENCES, "hits": HITS}
        config |= {"most_relevant": RELEVANT, "most_other": OTHER}
    rankings = part.sample(rankings_of(queries))
    if not rankings:
        raise part.error(
            "got no query with relevant and other candidates, expected sentences of at least two "
            "intents; choose "
            "another corpus"
        )
    config |= {
        "queries": len(rankings),
        "relevant_per_query": round(float(np.mean([item.relevant for item in rankings])), 2),
        "candidates_per_query": round(
            float(np.mean([len(item.candidates) for item in rankings])), 2
        ),
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        vectors = TextVectors(
            encoder, (text for item in rankings for text in (item.text, *item.candidates))
        )
        scores = []
        for item in rankings:
            relevant = np.arange(len(item.candidates)) < item.relevant
            scores.append(
                ranking_scores(vectors.of([item.text])[0], vectors.of(item.candidates), relevant)
            )
        return [
            item_percentage("semantic-retrieval", metric, "", [item[name] for item in scores])
            for metric, name in (("map", "average_precision"), ("mrr", "reciprocal_rank"))
        ]

    return Problem(config, measure)


# how many sentences are taken at most, a fixed random sample; about as many as the paper's sets
# have
SENTENCES = 7_000
HITS = 100  # how many sentences BM25 retrieves for each
# how many of the hits are kept at most, of the own intent and of others
RELEVANT = 30
OTHER = 40
OUT_OF_SCOPE = "oos"  # the label of sentences that have no intent in common
# Chinese has no blanks: each of its characters is a word
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")


def retrieval_queries(dialogues: Iterable[Dialogue]) -> list[RetrievalQuery]:
    """Build a query for each sentence with hits of its own and of other intents.

    They come in alphabetical order.

    Equal scores of BM25 are resolved in that order too; that of the dialogues does not matter.
    """
    try:
        import bm25s
    except ImportError:
        raise InputError(
            'semantic-retrieval: the package bm25s is missing; pip install "hf-dialemb[papers]"'
        ) from None

    # its importing lets it announce each index
    logging.getLogger("bm25s").setLevel(logging.WARNING)
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
        best = np.argsort(-scores, kind="stable")[:HITS]
        hits = [texts[hit] for hit in best if scores[hit] > 0]
        relevant = [hit for hit in hits if intents[hit] == intents[text]][:RELEVANT]
        other = [hit for hit in hits if intents[hit] != intents[text]][:OTHER]
        if relevant and other:
            queries.append(RetrievalQuery(text, tuple(relevant), tuple(other), label=intents[text]))
    return queries


def _sentences(dialogues: Iterable[Dialogue]) -> dict[str, str]:
    """Map the texts with words to their intent, if it is the same wherever they occur."""
    by_text = defaultdict(set)
    for dialogue in dialogues:
        for turn in dialogue.turns:
            if turn.intents:
                by_text[turn.content].add(turn.intents)
    return {
        text: next(iter(intents))[0]
        for text, intents in by_text.items()
        if len(intents) == 1
        and len(next(iter(intents))) == 1
        and (OUT_OF_SCOPE,) not in intents
        and _WORD.search(text)
    }
