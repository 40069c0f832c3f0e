"""Semantic retrieval and similarity of sentences: closed forms and draws."""

from collections import Counter
from itertools import product
from math import log

import numpy as np
import pytest
from given_vectors import Given, figures, hashed, said
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import label_ranking_average_precision_score
from sklearn.metrics.pairwise import cosine_similarity

from hf_dialemb.data import write_jsonl
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.papers.corpora.sentence_sets import RetrievalQuery, SentencePair
from hf_dialemb.papers.tasks import sentences

VERBS, THINGS = ("book", "cancel", "find"), ("room", "train", "taxi", "table")
WHEN = ("now", "today", "tomorrow", "on monday", "at noon", "again please")
WORDS = [f"{verb} a {thing} {when}" for verb, thing, when in product(VERBS, THINGS, WHEN)]
INTENTS = said(*((text, text.split()[0]) for text in WORDS))


def test_candidates_share_words_in_the_order_of_bm25_and_differ_in_intent():
    queries = {query.text: query for query in sentences.retrieval_queries(INTENTS)}
    assert list(queries) == sorted(WORDS)
    words = [text.split() for text in WORDS]
    documents = Counter(word for text in words for word in set(text))
    average = np.mean([len(text) for text in words])

    def score(query, text):
        total = 0
        for word in query:
            count, weight = (
                text.count(word),
                log(1 + (len(WORDS) - documents[word] + 0.5) / (documents[word] + 0.5)),
            )
            total += weight * count / (count + 1.5 * (0.25 + 0.75 * len(text) / average))
        return round(total, 5)

    for query, found in queries.items():
        rest = [text for text in WORDS if text != query]
        ordered = sorted(
            rest, key=lambda text, query=query: (-score(query.split(), text.split()), text)
        )
        assert found.label == query.split()[0]
        assert (
            list(found.relevant)
            == [text for text in ordered if text.split()[0] == found.label][:30]
        )
        assert (
            list(found.other) == [text for text in ordered if text.split()[0] != found.label][:40]
        )


def test_a_text_counts_once_if_it_has_words_and_one_intent():
    added = [("book a seat", "book"), ("book a seat", "find"), ("find a seat", "find book")]
    added += [("book", "oos"), ("?!", "book"), ("a book", "")]
    for corpus in ([*INTENTS[::-1], *INTENTS], [*INTENTS, *said(*added)]):
        assert sentences.retrieval_queries(corpus) == sentences.retrieval_queries(INTENTS)
    assert sentences.retrieval_queries(said(("?!", "book"))) == []
    # A sentence among its own kind asks nothing, and Chinese characters are words.
    assert sentences.retrieval_queries(said(("a room", "find"), ("a taxi", "find"))) == []
    kinds = said(("a room", "find"), ("one room", "find"), ("no room", "book"))
    first = RetrievalQuery("a room", ("one room",), ("no room",), "find")
    assert sentences.retrieval_queries(kinds) == [
        first,
        RetrievalQuery("one room", ("a room",), ("no room",), "find"),
    ]
    kinds = said(("我要取消订单", "取消"), ("订单取消", "取消"), ("查订单", "查询"))
    assert [query.label for query in sentences.retrieval_queries(kinds)] == ["取消", "取消"]
    queries = [
        RetrievalQuery("q", ("a", "b", "a", "q"), ("c", "b", "c", "q")),
        RetrievalQuery("q", ("q",), ("c",)),
        RetrievalQuery("q", ("a",), ("a", "q")),
    ]
    assert sentences.rankings_of(queries) == [("q", ("a", "b", "c"), 2)]


def test_map_and_mrr_of_a_corpus_with_intents(tmp_path):
    path = tmp_path / "mine.jsonl"
    write_jsonl(INTENTS, path)
    problem = sentences.load_rankings(CorpusPart(str(path)))
    knowing = Given(lambda text: np.eye(3)[VERBS.index(text.split()[0])])
    assert figures(problem.measure(knowing, [0, 1])) == {("map", ""): 100, ("mrr", ""): 100}
    assert [sorted(call) for call in knowing.calls] == [sorted(WORDS)]
    assert (problem.config["queries"], problem.config["hits"]) == (72, 100)
    expected = []
    for query in sentences.retrieval_queries(INTENTS):
        cosines = cosine_similarity(
            [hashed(query.text)], [hashed(text) for text in (*query.relevant, *query.other)]
        )
        labels = [[True] * len(query.relevant) + [False] * len(query.other)]
        expected.append(label_ranking_average_precision_score(labels, cosines))
    found = figures(problem.measure(Given(hashed), [0]))
    assert found["map", ""] == pytest.approx(100 * np.mean(expected), abs=1e-4)
    assert sentences.load_rankings(CorpusPart(str(path), None, "all", 10)).config["queries"] == 10
    write_jsonl(said(("a room", "find")), path)
    with pytest.raises(InputError, match="got no query with relevant and other candidates"):
        sentences.load_rankings(CorpusPart(str(path)))


@pytest.fixture
def scored(monkeypatch):
    def give(pairs):
        monkeypatch.setattr("hf_dialemb.data.load_examples", lambda *_, **__: pairs)
        return sentences.load_scored_pairs(CorpusPart("jddc_sts"))

    return give


def test_similarity_is_correlation_with_scores_or_zero(scored, caplog):
    pairs = [SentencePair(f"one {n}", f"other {n % 7}", score=float(n % 5 + 1)) for n in range(50)]
    encoder = Given(hashed)
    found = figures(scored(pairs).measure(encoder, [0]))
    cosines = [
        cosine_similarity([hashed(pair.first)], [hashed(pair.second)])[0, 0] for pair in pairs
    ]
    scores = [pair.score for pair in pairs]
    assert found["spearman", ""] == pytest.approx(
        100 * spearmanr(cosines, scores).statistic, abs=1e-4
    )
    assert found["pearson", ""] == pytest.approx(
        100 * pearsonr(cosines, scores).statistic, abs=1e-4
    )
    assert [len(call) for call in encoder.calls] == [57]
    scaled = scored(pairs[::-1]).measure(Given(lambda text: 8 * hashed(text)), [1])
    assert figures(scaled) == pytest.approx(found, abs=1e-9)
    rising = scored([SentencePair("q", str(n), score=float(n)) for n in range(6)])
    assert set(figures(rising.measure(Given(lambda text: [1.0, 2.0]), [0])).values()) == {0}
    assert "undefined and counts as 0" in caplog.text
    for pair in (SentencePair("a", "b"), SentencePair("a", "b", score=1.0)):
        with pytest.raises(InputError, match="different scores, expected at least two"):
            scored([pair] * 3)
