"""Tasks of the papers alone: speakers, probes and sentences, by closed forms and draws."""

from collections import Counter
from itertools import cycle, product
from math import log

import numpy as np
import pytest
from checkpoints import dual_encoder
from given_vectors import Given, figures, hashed, said
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import label_ranking_average_precision_score
from sklearn.metrics.pairwise import cosine_similarity

from hf_dialemb import Dialogue, InputError, Turn, data, evaluate, load_encoder
from hf_dialemb.data import write_jsonl
from hf_dialemb.encoders.embedding_cache import RememberingEncoder
from hf_dialemb.evaluation import get_task
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.papers.corpora.sentence_sets import RetrievalQuery, SentencePair
from hf_dialemb.papers.tasks import probes, sentences
from hf_dialemb.papers.tasks.ablations import SPEAKERS, speaker_vectors
from hf_dialemb.papers.tasks.probes import ACTS, PARTS, WORDS, assistant_contexts, last_words


def test_each_speaker_is_measured_by_what_it_says(tmp_path, tiny_checkpoint, sample_dialogues):
    said = {"hotel": "a room", "train": "a ticket"}
    dialogues = [
        Dialogue((Turn("user", text), Turn("assistant", f"for {n}")), f"{name} {n}", (name,))
        for name, text in said.items()
        for n in range(4)
    ]
    alone = Dialogue((Turn("user", "well"),), "alone", ("hotel",))
    path = tmp_path / "mine.jsonl"
    write_jsonl([*dialogues, alone], path)
    problem = get_task("ablations").load(CorpusPart(str(path)))
    assert (problem.config["dialogues"], problem.config["labels"]) == (8, 2)
    first, second = problem.measure(load_encoder("tfidf"), [0])
    assert (first.metric, first.setting, second.setting) == ("map", *SPEAKERS)
    assert first.mean == pytest.approx(100)
    assert second.mean < 100
    encoder = load_encoder(str(tiny_checkpoint))
    given = [*sample_dialogues[:3], Dialogue((Turn("assistant", "good day"), Turn("user", "yes")))]
    vectors = speaker_vectors(RememberingEncoder(encoder), given)
    speakers = encoder.encode_speakers(given)
    for place, setting in enumerate(SPEAKERS):
        np.testing.assert_array_equal(vectors[setting][:-1], speakers[:-1, place])
        np.testing.assert_array_equal(vectors[setting][-1], speakers[-1, 1 - place])


TOPICS = ("room", "train", "taxi", "table")


def talk(*turns: tuple[str, str, str]) -> Dialogue:
    return Dialogue(
        tuple(Turn(role, content, tuple(acts.split())) for role, content, acts in turns)
    )


HELLO = talk(
    ("assistant", "Welcome!", "greet"),
    ("user", "A cheap room <|user|> please", ""),
    ("assistant", "Where?", "request"),
    ("user", "zzz North north", ""),
    ("assistant", "Booked.", ""),
)
BYE = talk(("user", "Bye", ""), ("assistant", "Bye", "bye inform"))


def test_contexts_end_before_the_assistant_and_words_are_the_last_turns():
    contexts = assistant_contexts([HELLO, BYE])
    assert contexts.turns == [HELLO.turns[:2], HELLO.turns[:4], BYE.turns[:1]]
    assert contexts.acts == [{"request"}, set(), {"bye", "inform"}]
    assert contexts.labelled(ACTS) == contexts.at([0, 2])
    assert contexts.labelled(WORDS) == contexts
    tokenizer = dual_encoder([HELLO], 0, vocabulary_size=30).tokenizer
    known, _ = last_words([HELLO.turns[:2], HELLO.turns[:4]], tokenizer)
    assert {"a", "cheap", "room", "please"} <= known
    assert not known & set(tokenizer.all_special_tokens)
    small = dual_encoder([talk(("user", "north north room", ""))], 0, vocabulary_size=9).tokenizer
    assert last_words([HELLO.turns[:2], HELLO.turns[:4]], small) == [frozenset(), {"north"}]


def test_a_layer_reads_the_labels_whatever_the_scale_of_vectors(random):
    vectors = {part: random.normal(size=(300, 5)).astype(np.float32) for part in PARTS}
    labels = {part: (of_part > 0).astype(np.int64) for part, of_part in vectors.items()}
    moved = {
        part: np.column_stack([8 * of_part + 4, np.full(300, 3, np.float32)])
        for part, of_part in vectors.items()
    }
    for given in (vectors, moved):
        micro, macro = probes.probe("task", given, labels, [0]).rows
        assert min(micro.mean, macro.mean) > 97
    upset = labels | {"dev": 1 - labels["dev"]}  # the more is learnt, the worse on dev
    assert probes.probe("task", vectors, upset, [0]).config["best_epochs"] == [1]


def test_figures_are_scikit_learns_and_a_seed_repeats_them(random):
    vectors = {part: random.normal(size=(40, 6)).astype(np.float32) for part in PARTS}
    labels = {part: (random.random((40, 6)) < 0.3).astype(np.int64) for part in PARTS}
    labels["test"][:, 2] = 0  # a class that never holds
    first, again = (probes.probe("task", vectors, labels, [0, 1]) for _ in range(2))
    assert first.rows == again.rows
    micro, macro = first.rows
    assert (micro.metric, macro.metric, micro.n) == ("micro_f1", "macro_f1", 2)
    hits, wrong, missed = first.counts.sum(axis=1).T  # (S,) each
    assert micro.mean == pytest.approx(np.mean(200 * hits / (2 * hits + wrong + missed)))
    assert (hits + missed == labels["test"].sum()).all()
    assert macro.mean > 0


def made(split: str, count: int) -> list[Dialogue]:
    """Each user names one of four things, and the assistant's act is of that thing."""
    return [
        Dialogue(
            (Turn("user", f"a {topic} please"), Turn("assistant", "fine", (f"offer {topic}",))),
            f"{split}/{number}",
        )
        for number, topic in zip(range(count), cycle(TOPICS))
    ]


@pytest.fixture
def small(monkeypatch):
    sizes = {"train": 400, "dev": 40, "test": 12}
    monkeypatch.setattr(
        data, "load_dialogues", lambda corpus, data_dir, split, **_: made(split, sizes[split])
    )


@pytest.mark.parametrize("target", [WORDS, ACTS])
def test_a_layer_reads_what_the_vectors_say_and_guesses_otherwise(small, target):
    problem = probes.load_probe(CorpusPart("multiwoz", None, "test", None), target)
    assert problem.config["contexts"] == {"train": 400, "dev": 40, "test": 12}
    telling = Given(lambda text: np.eye(4)[TOPICS.index(text.split()[1])])
    silent = Given(lambda text: [1.0] * 4)
    told, guessed = (
        {row.metric: row for row in problem.measure(encoder, range(4))}
        for encoder in (telling, silent)
    )
    assert {row.task for row in told.values()} == {f"{target}-probe"}
    assert told["micro_f1"].mean == told["macro_f1"].mean == 100.0
    assert told["micro_f1"].n == probes.REPEATS
    assert guessed["macro_f1"].mean < 60
    limited = probes.load_probe(CorpusPart("multiwoz", None, "test", 10), target)
    assert limited.config["contexts"] == {"train": 10, "dev": 10, "test": 10}


def test_a_split_to_learn_from_is_not_measured(small, tmp_path):
    for split in ("train", "dev", "all"):
        with pytest.raises(InputError, match=f"got split {split}, which the task learns from"):
            probes.load_probe(CorpusPart("multiwoz", None, split, None), ACTS)
    write_jsonl(made("test", 3), tmp_path / "own.jsonl")
    with pytest.raises(InputError, match="got no split train, expected train and dev and another"):
        evaluate(["tfidf"], str(tmp_path / "own.jsonl"), tasks=["bag-of-words-probe"])


VERBS, THINGS = ("book", "cancel", "find"), ("room", "train", "taxi", "table")
PHRASES = [
    f"{verb} a {thing} {when}"
    for verb, thing, when in product(
        VERBS, THINGS, ("now", "today", "tomorrow", "on monday", "at noon", "again please")
    )
]
INTENTS = said(*((text, text.split()[0]) for text in PHRASES))


def test_candidates_share_words_in_the_order_of_bm25_and_differ_in_intent():
    queries = {query.text: query for query in sentences.retrieval_queries(INTENTS)}
    assert list(queries) == sorted(PHRASES)
    words = [text.split() for text in PHRASES]
    documents = Counter(word for text in words for word in set(text))
    average = np.mean([len(text) for text in words])

    def score(query, text):
        total = 0
        for word in query:
            count, weight = (
                text.count(word),
                log(1 + (len(PHRASES) - documents[word] + 0.5) / (documents[word] + 0.5)),
            )
            total += weight * count / (count + 1.5 * (0.25 + 0.75 * len(text) / average))
        return round(total, 5)

    for query, found in [*queries.items()][::6]:
        rest = [text for text in PHRASES if text != query]
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
    assert [sorted(call) for call in knowing.calls] == [sorted(PHRASES)]
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


def test_similarity_is_correlation_with_scores_or_zero(monkeypatch, caplog):
    def scored(pairs):
        monkeypatch.setattr(sentences, "load_examples", lambda *_, **__: pairs)
        return sentences.load_scored_pairs(CorpusPart("jddc_sts"))

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
