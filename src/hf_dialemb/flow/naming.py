"""Names clusters for a person: by the utterance in their middle, typical phrases, and examples.

Phrases are found by class-based TF-IDF (Grootendorst, 2022).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .flow import EXAMPLES, Cluster, Flow, Utterances, numbered
from .outcomes import says_failed

PHRASES = 5  # so many a cluster gets at most
_LONGEST_PHRASE = 3
_LONGEST_WORD = 50  # what has more characters is no word
_CANDIDATES = 50  # the best of a group are looked through for those that say something new
_SAME = 0.75  # a phrase that is mostly said within a longer one gives way to it
_ASKING = frozenset(("what", "when", "where", "which", "who", "whose", "why", "how"))
_STOPS = re.compile(r"[^\w\s'’-]+|\s-+\s")  # phrases do not go across punctuation
_WORD = re.compile(r"\w(?:[\w'’-]*\w)?")

LONGEST_TEXT = 300  # so many characters a name or an example has at most: both are repeated in every file of a flow
_NAMING = 3  # so many phrases make a name
_NEAR = 6  # digits of a cosine that count, so that rounding does not decide between equally near texts


def named(
    title: str,
    utterances: Utterances,
    vectors: NDArray[Any],
    labels: Mapping[str, NDArray[Any]],
    settings: Mapping[str, Any] | None = None,
) -> Flow:
    """Builds a flow from clusters, each named for the utterance that is nearest to its centroid.

    ``vectors`` are ``(N, D)``, and ``labels`` give for each role the cluster of each of its utterances, in order.
    Clusters come as `hf_dialemb.flow.flow.numbered` has them; texts are cut to `LONGEST_TEXT`.
    """
    of_each = np.zeros(len(utterances), dtype=np.int64)
    for role, rows in utterances.rows_by_role().items():
        of_each[rows] = labels[role]
    ids, numbers = numbered(list(zip(utterances.roles, of_each.tolist(), strict=True)))
    members = np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])
    texts = [[utterances.texts[row] for row in rows] for rows in members]
    phrases: list[tuple[str, ...]] = []
    for role in dict.fromkeys(role for role, _ in ids):
        phrases += typical_phrases([said for (other, _), said in zip(ids, texts, strict=True) if other == role])
    middles, clusters = centroids(vectors, numbers), []
    for number, ((role, _), (name, size)) in enumerate(ids.items()):
        nearest = _by_nearness(texts[number], _unit(vectors[members[number]]) @ middles[number])
        examples = tuple(dict.fromkeys(map(shortened, nearest[:EXAMPLES])))
        failed = 2 * sum(map(says_failed, texts[number])) > size
        clusters.append(Cluster(name, role, examples[0], size, phrases[number], examples, failed))
    return Flow(title, utterances, numbers, tuple(clusters), dict(settings or {}))


def centroids(vectors: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float32]:
    """Computes the middle of each of C clusters, ``(C, D)``, from the cluster of each vector, none of which is empty.

    It is the mean of the unit vectors, brought to unit length: an utterance's cosine with it grows with its mean cosine
    with the cluster's utterances.
    """
    from scipy.sparse import csr_array

    places = np.arange(len(labels))
    members = csr_array((np.ones(len(labels), dtype=np.float32), (labels, places)))
    return _unit(members @ _unit(vectors))


def with_names(flow: Flow, names: Sequence[str]) -> Flow:
    """Gives clusters other names, in order; an empty one leaves a cluster's own. See `merged_names` for equal ones."""
    pairs = zip(flow.clusters, names, strict=True)
    return replace(flow, clusters=tuple(replace(cluster, name=name or cluster.name) for cluster, name in pairs))


def phrase_names(flow: Flow) -> Flow:
    """Names clusters for their first one to three phrases, parted by commas; one without phrases keeps its name."""
    return with_names(flow, [shortened(", ".join(cluster.phrases[:_NAMING])) for cluster in flow.clusters])


def merged_names(flow: Flow) -> Flow:
    """Makes clusters of one role one where they have the same name, but for case and blanks at the ends.

    What failed is not made one with what did not.
    Phrases and examples of a cluster come from all its parts in turn, those of the largest, whose name it has, first.
    """
    keys = [(cluster.role, (cluster.name.strip().casefold(), cluster.failed)) for cluster in flow.clusters]
    ids, labels = numbered([keys[label] for label in flow.labels])
    clusters = []
    for key, (name, size) in ids.items():
        members = [cluster for cluster, other in zip(flow.clusters, keys, strict=True) if other == key]
        members.sort(key=lambda member: -member.size)
        phrases = _in_turn([member.phrases for member in members], PHRASES)
        examples = _in_turn([member.examples for member in members], EXAMPLES)
        clusters.append(replace(members[0], id=name, size=size, phrases=phrases, examples=examples))
    return replace(flow, labels=labels, clusters=tuple(clusters))


def _by_nearness(texts: Sequence[str], cosines: NDArray[Any]) -> list[str]:
    """Sorts texts, each once: the nearest first, of equally near ones the more frequent, then by the alphabet."""
    counts = Counter(texts)
    nearest: dict[str, float] = {}
    for text, cosine in zip(texts, np.round(cosines, _NEAR).tolist(), strict=True):
        nearest[text] = max(cosine, nearest.get(text, cosine))
    return sorted(nearest, key=lambda text: (-nearest[text], -counts[text], text))


def shortened(text: str, most: int = LONGEST_TEXT) -> str:
    """Cuts a long text to so many characters, between words unless one is very long."""
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    whole = kept if text[most - 1].isspace() else kept.rpartition(" ")[0]
    return f"{(whole if len(whole) > most // 2 else kept).rstrip()}…"


def _unit(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Brings vectors to unit length; those of zeros, which have no direction, stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return unit


def _in_turn(lists: Sequence[Sequence[str]], most: int) -> tuple[str, ...]:
    """Takes the first of each, then the second of each, and so on, each once."""
    every = dict.fromkeys(text for of_each in zip_longest(*lists) for text in of_each if text is not None)
    return tuple(every)[:most]


def typical_phrases(groups: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Finds phrases of one to three words that are typical of each of G groups: at most `PHRASES`, the best first.

    A phrase scores the share of a group's texts that hold it, times ``log(1 + A / f)``: f texts hold it in all, A is
    the mean over groups of the sum of such counts. One of two words counts half as much again, one of three twice, as
    it says more. Phrases that begin or end with a word such as "the", of digits alone, or said once in a group of
    several texts, are left out, and so is what repeats a part of another.
    """
    phrases, counts = counted_phrases(groups)
    totals = np.asarray(counts.sum(axis=0)).ravel()
    rarity = np.log1p(totals.sum() / len(groups) / totals)
    found = []
    for row, group in enumerate(groups):
        start, end = counts.indptr[row : row + 2]
        held_by, often = counts.indices[start:end], counts.data[start:end]
        several = often >= min(2, len(group))
        found.append(best_phrases(phrases, held_by[several], often[several], rarity[held_by[several]]))
    return found


def counted_phrases(groups: Sequence[Sequence[str]]) -> tuple[NDArray[Any], Any]:
    """Finds the P phrases of texts, ``(P,)``, and counts the texts of each group that hold them, sparse ``(G, P)``."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import CountVectorizer

    texts = {text: row for row, text in enumerate(dict.fromkeys(text for group in groups for text in group))}
    vectorizer = CountVectorizer(analyzer=_phrases_of, binary=True, dtype=np.float32)
    try:
        held = vectorizer.fit_transform(texts)
    except ValueError:  # scikit-learn's way to say that no text holds a word
        return np.empty(0, dtype=object), csr_matrix((len(groups), 0), dtype=np.float32)
    rows = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    columns = [texts[text] for group in groups for text in group]
    members = csr_matrix((np.ones(len(columns), dtype=np.float32), (rows, columns)), shape=(len(groups), len(texts)))
    return vectorizer.get_feature_names_out(), (members @ held).tocsr()


def _phrases_of(text: str) -> set[str]:
    """Finds all phrases of a text that say something."""
    found: set[str] = set()
    for part in _STOPS.split(text.lower()):
        words = _WORD.findall(part)
        for length in range(1, _LONGEST_PHRASE + 1):
            found.update(
                " ".join(words[start : start + length])
                for start in range(len(words) - length + 1)
                if _says_something(words[start : start + length])
            )
    return found


def _says_something(words: Sequence[str]) -> bool:
    empty = _empty_words()
    first, last = (word.replace("’", "'").partition("'")[0] for word in (words[0], words[-1]))
    begins = first not in empty or (first in _ASKING and len(words) > 1)
    long = any(len(word) > _LONGEST_WORD for word in words)
    return begins and last not in empty and not long and not all(word.isdigit() for word in words)


@cache
def _empty_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    cut_off = {"d", "ll", "m", "n", "s", "t", "ve"}  # what stands after an apostrophe, or before one, in "I 'm"
    return frozenset(ENGLISH_STOP_WORDS) | {"like"} | cut_off


def best_phrases(
    phrases: NDArray[Any], columns: NDArray[Any], often: NDArray[Any], rarity: NDArray[Any]
) -> tuple[str, ...]:
    """Chooses the phrases of one group that score best and do not repeat one another.

    Of the phrases that ``columns`` name it is given how often they are held, and what each of these times is worth.
    """
    words = np.array([phrase.count(" ") + 1 for phrase in phrases[columns]])
    scores = often * rarity * (1 + words) / 2
    order = np.lexsort((phrases[columns], -scores))[:_CANDIDATES]
    candidates = dict(zip(phrases[columns[order]], often[order], strict=True))
    kept: list[str] = []
    for phrase, count in candidates.items():
        longer = any(_goes_on(phrase, other) and often >= _SAME * count for other, often in candidates.items())
        if not longer and not any(_within(phrase, other) or _within(other, phrase) for other in kept):
            kept.append(phrase)
    return tuple(kept[:PHRASES])


def _goes_on(phrase: str, other: str) -> bool:
    """Says whether a phrase is cut out of another, or ends in the middle of it: "lost my credit" of "credit card"."""
    last, (first, *more) = phrase.rpartition(" ")[2], other.split()
    goes_on = phrase != last == first and bool(more) and (more[0] == "of" or more[0] not in _empty_words())
    return goes_on or _within(phrase, other)


def _within(phrase: str, other: str) -> bool:
    return phrase != other and f" {phrase} " in f" {other} "
