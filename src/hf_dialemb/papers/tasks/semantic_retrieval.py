"""Semantic retrieval (DialogueCSE, section 5.1.2): each sentence ranks candidates of its own by cosine.

A corpus of kind retrieval gives the candidates; from the intents of any other they are built as the paper built its
own (see `papers.corpora.retrieval_sets`). Equal texts are one candidate, which is relevant if one of them is; the query
itself is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...corpora.examples import RetrievalQuery
from ...encoders import Encoder
from ...evaluation.results.rows import Row
from ...evaluation.tasks.task import CorpusPart, Problem, item_percentage
from ...evaluation.tasks.texts import TextVectors
from ...metrics.ranking import ranking_scores
from ..corpora import retrieval_sets


class Ranking(NamedTuple):
    """A query and what it ranks: distinct sentences, first the relevant ones; at least one is and one is not."""

    text: str
    candidates: tuple[str, ...]
    relevant: int


def rankings_of(queries: Sequence[RetrievalQuery]) -> list[Ranking]:
    """Leave out what occurs twice, and queries that are left with candidates of one kind."""
    results = []
    for query in queries:
        relevant = [text for text in dict.fromkeys(query.relevant) if text != query.text]
        other = [text for text in dict.fromkeys(query.other) if text != query.text and text not in query.relevant]
        if relevant and other:
            results.append(Ranking(query.text, (*relevant, *other), len(relevant)))
    return results


def load_rankings(part: CorpusPart) -> Problem:
    """Load sentences with candidates to rank."""
    config: dict[str, Any] = {}
    if part.kind == "retrieval":
        queries = part.examples()
    else:
        queries = retrieval_sets.retrieval_queries(part.dialogues())
        config = {"sentences": retrieval_sets.SENTENCES, "hits": retrieval_sets.HITS}
        config |= {"most_relevant": retrieval_sets.RELEVANT, "most_other": retrieval_sets.OTHER}
    rankings = part.sample(rankings_of(queries))
    if not rankings:
        raise part.error(
            "got no query with relevant and other candidates, expected sentences of at least two intents; choose "
            "another corpus"
        )
    config |= {
        "queries": len(rankings),
        "relevant_per_query": round(float(np.mean([item.relevant for item in rankings])), 2),
        "candidates_per_query": round(float(np.mean([len(item.candidates) for item in rankings])), 2),
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        vectors = TextVectors(encoder, (text for item in rankings for text in (item.text, *item.candidates)))
        scores = []
        for item in rankings:
            relevant = np.arange(len(item.candidates)) < item.relevant
            scores.append(ranking_scores(vectors.of([item.text])[0], vectors.of(item.candidates), relevant))
        return [
            item_percentage("semantic-retrieval", metric, "", [item[name] for item in scores])
            for metric, name in (("map", "average_precision"), ("mrr", "reciprocal_rank"))
        ]

    return Problem(config, measure)
