"""Name clusters by the utterance in their middle, by typical phrases, and by examples.

Topics use the same phrases.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import regex  # its \w has the vowel signs of Hindi and Thai, which that of re lacks
from numpy.typing import NDArray

from ...metrics.vectors import unit
from .flow import EXAMPLES, Cluster, Flow, Utterances
from .flow_clustering import in_order_of_size

PHRASES = 5  # of a cluster at most
LONGEST_TEXT = 300  # characters of a name or an example: both are repeated in every file of a flow
_LONGEST_PHRASE = 3  # words
_LONGEST_WORD = 50  # what has more characters is no word
_CANDIDATES = 50  # best phrases of a group; a phrase that repeats a better one is dropped
_SAME = 0.75  # a phrase that mostly occurs within a longer one gives way to it
_ASKING = frozenset(("what", "when", "where", "which", "who", "whose", "why", "how"))
_STOPS = regex.compile(r"[^\w\s'’-]+|\s-+\s")  # phrases do not go across punctuation
# of scripts without blanks
_LETTERS = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_UNSPACED = regex.compile(f"(?<=[{_LETTERS}]) (?=[{_LETTERS}])")
# a letter of these, with its vowels
_SYLLABLE = regex.compile(rf"[เ-ไເ-ໄ]?(?=[{_LETTERS}])\X[ะาະາါား]*")
_WORDED = regex.compile(r"(?=..)\D*[^\W\d_]\D*")  # no number and no single letter
_MOST_CONTRAST = 2.0  # of a phrase
_HIRAGANA = regex.compile(r"\p{Hiragana}")  # a Japanese particle, or part of an ending
_WORD = regex.compile(
    rf"[\p{{Katakana}}ー]+|{_SYLLABLE.pattern}|[^\W{_LETTERS}](?:[^\W{_LETTERS}'’-]|['’-](?=\w))*"
)
_CHINESE_WORD = regex.compile(r"\p{Han}{2,}")  # where nothing cuts words, each letter is one
_WORD_OR_CHINESE = regex.compile(rf"{_CHINESE_WORD.pattern}|{_WORD.pattern}")
_CONTENT = ("n", "v", "a", "j")  # tags of Chinese nouns, verbs, adjectives and short forms
_DIGITS = 6  # of a cosine, so that rounding does not decide between equally near texts


def named(
    title: str,
    utterances: Utterances,
    vectors: NDArray[Any],
    labels: Mapping[str, NDArray[Any]],
    settings: Mapping[str, Any] | None = None,
) -> Flow:
    """Build a flow from clusters, each named for the utterance that is nearest to its centroid.

    The N utterances have vectors ``(N, D)``; ``labels`` says for each role the cluster of each of
    its utterances, in order, and ``settings`` everything that decided the result.
    """
    numbers = np.zeros(len(utterances), dtype=np.int32)
    ids: list[tuple[str, str]] = []  # the role and the id of each cluster
    for role, rows in utterances.rows_by_role().items():
        own = in_order_of_size(labels[role].astype(np.int32))
        numbers[rows] = len(ids) + own
        ids += [(role, f"{role}-{number}") for number in range(1, 2 + int(own.max()))]
    members = np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])
    texts = [[utterances.texts[row] for row in rows] for rows in members]
    phrases: list[tuple[str, ...]] = []
    for role in dict.fromkeys(role for role, _ in ids):
        phrases += best_phrases(
            [group for (other, _), group in zip(ids, texts, strict=True) if other == role]
        )
    middles = centroids(vectors, numbers)
    clusters = []
    for number, (role, name) in enumerate(ids):
        nearest = _by_nearness(texts[number], unit(vectors[members[number]]) @ middles[number])
        examples = tuple(dict.fromkeys(map(shortened, nearest[:EXAMPLES])))
        size = len(members[number])
        clusters.append(Cluster(name, role, examples[0], size, phrases[number], examples))
    return Flow(title, utterances, numbers, tuple(clusters), dict(settings or {}), middles)


def centroids(vectors: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float32]:
    """Return the mean of the unit vectors of each of C clusters, at unit length, ``(C, D)``."""
    from scipy.sparse import csr_array

    members = csr_array((np.ones(len(labels), dtype=np.float32), (labels, np.arange(len(labels)))))
    return unit(members @ unit(vectors))


def _by_nearness(texts: Sequence[str], cosines: NDArray[Any]) -> list[str]:
    """Sort different texts by falling cosine, then by falling frequency, then by the alphabet."""
    counts = Counter(texts)
    pairs = zip(np.round(cosines, _DIGITS).tolist(), texts, strict=True)
    nearest = {text: cosine for cosine, text in sorted(pairs)}  # the highest of equal texts
    return sorted(nearest, key=lambda text: (-nearest[text], -counts[text], text))


def shortened(text: str, most: int = LONGEST_TEXT) -> str:
    """Cut a text to a number of characters, between words unless a word is very long."""
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    whole = kept if text[most - 1].isspace() else kept.rpartition(" ")[0]
    return f"{(whole if len(whole) > most // 2 else kept).rstrip()}…"


def best_phrases(groups: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return at most `PHRASES` phrases of one to three words that distinguish each group of texts.

    The best come first. A phrase scores the number of a group's texts that hold it, times
    ``log(p / q)``, at most `_MOST_CONTRAST`: p is its share of these texts, q of all others. A
    single group has its frequent phrases. Two words count half as much again, three twice. A phrase
    that repeats a better one, holds a number, is a letter, or occurs once in a group of several
    texts, is left out.
    """
    phrases, counts = _counted_phrases(groups)
    is_worded = np.array([_WORDED.fullmatch(text) is not None for text in phrases], dtype=bool)
    sizes = [len(group) for group in groups]
    totals = np.asarray(counts.sum(axis=0)).ravel()
    result = []
    for row, size in enumerate(sizes):
        own = slice(*counts.indptr[row : row + 2])
        places = counts.indices[own]
        often = counts.data[own]
        elsewhere = (totals[places] - often + 0.5) / (sum(sizes) - size + 1)
        contrast = np.minimum(np.log(often / size / elsewhere), _MOST_CONTRAST)
        if len(groups) == 1:
            contrast = np.ones_like(often)
        kept = (often >= min(2, size)) & (contrast > 0) & is_worded[places]
        names = phrases[places[kept]]
        often = often[kept]
        words = np.array([phrase.count(" ") + 1 for phrase in names])
        scores = often * contrast[kept] * (1 + words) / 2
        order = np.lexsort((names, -scores))[:_CANDIDATES]
        result.append(_different(dict(zip(names[order], often[order], strict=True))))
    return result


def _counted_phrases(groups: Sequence[Sequence[str]]) -> tuple[NDArray[Any], Any]:
    """Return the P phrases of texts, ``(P,)``, and how many texts of each group hold them.

    The counts are sparse ``(G, P)``.
    """
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import CountVectorizer

    phrases_of = cache(_phrases_of)

    def analyzed(group: Sequence[str]) -> list[str]:
        return [phrase for text in group for phrase in phrases_of(text)]

    vectorizer = CountVectorizer(analyzer=analyzed, dtype=np.float32)
    try:
        counts = vectorizer.fit_transform(groups)
    except ValueError:  # no text holds a word
        return np.empty(0, dtype=object), csr_matrix((len(groups), 0), dtype=np.float32)
    return vectorizer.get_feature_names_out(), counts


def _phrases_of(text: str) -> set[str]:
    """Return all phrases of a text that say something."""
    phrases: set[str] = set()
    for clause in clauses(text):
        words = words_of(clause)
        for length in range(1, _LONGEST_PHRASE + 1):
            runs = (words[start : start + length] for start in range(len(words) - length + 1))
            phrases.update(joined(run) for run in runs if _says_something(run))
    return phrases


def clauses(text: str) -> list[str]:
    """Return the parts of a text between punctuation, in small letters."""
    return [" ".join(part.split()) for part in _STOPS.split(text.lower()) if part.strip()]


def words_of(clause: str) -> list[str]:
    """Return the words of a clause.

    Chinese is cut into words where ``rjieba`` is installed. Other scripts without blanks are cut
    into syllables, and Katakana up to other letters.
    """
    cutter = _cutter()
    if cutter is None or _HIRAGANA.search(clause):
        return list(_WORD.findall(clause))
    cut = _CHINESE_WORD.sub(lambda run: f" {' '.join(cutter.cut(run[0]))} ", clause)
    return list(_WORD_OR_CHINESE.findall(cut))


@cache
def _cutter() -> Any:
    """Return the package that cuts Chinese into words, or None where it is not installed."""
    if find_spec("rjieba") is None:
        return None
    import rjieba

    return rjieba


def is_syllable(word: str) -> bool:
    """Return whether a word is a single letter of a script without blanks, with its vowels."""
    return _SYLLABLE.fullmatch(word) is not None


def is_unspaced(text: str) -> bool:
    """Return whether a text begins with a letter of a script without blanks."""
    return _SYLLABLE.match(text) is not None


def joined(words: Sequence[str]) -> str:
    """Make a phrase of words, without blanks between letters that have none."""
    phrase: str = _UNSPACED.sub("", " ".join(words))
    return phrase


def ends_in_a_letter(words: Sequence[str]) -> bool:
    """Return whether a run of Chinese words begins or ends with a single letter, as a particle."""
    is_cut = any(map(_CHINESE_WORD.fullmatch, words))
    return is_cut and (is_syllable(words[0]) or is_syllable(words[-1]))


def is_empty(word: str) -> bool:
    """Return whether a word says nothing, as "the", "isn't" or a Chinese particle."""
    if _CHINESE_WORD.fullmatch(word):
        return not _cutter().tag(word)[0][1].startswith(_CONTENT)
    return word.endswith("n't") or word.partition("'")[0] in _empty_words()


def _says_something(words: Sequence[str]) -> bool:
    first, last = (word.replace("’", "'") for word in (words[0], words[-1]))
    begins = not is_empty(first) or (first.partition("'")[0] in _ASKING and len(words) > 1)
    long = any(len(word) > _LONGEST_WORD for word in words)
    lone = is_syllable(first) if len(words) == 1 else ends_in_a_letter(words)
    ends = is_empty(last) or any(map(_HIRAGANA.fullmatch, (first, last)))
    return (
        begins and not ends and not long and not lone and not all(word.isdigit() for word in words)
    )


@cache
def _empty_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    # what stands after an apostrophe, or before one, in "I 'm"
    cut_off = {"d", "ll", "m", "n", "s", "t", "ve"}
    return frozenset(ENGLISH_STOP_WORDS) | {"like"} | cut_off


def _different(candidates: Mapping[str, float]) -> tuple[str, ...]:
    """Return the first `PHRASES` that do not repeat one another.

    ``candidates`` are phrases, and how many texts hold them.
    """

    def within(phrase: str, other: str) -> bool:
        return phrase != other and (
            phrase in other if is_unspaced(phrase) else f" {phrase} " in f" {other} "
        )

    def goes_on(phrase: str, other: str) -> bool:
        """Return whether a phrase lies in another or goes on in it.

        "lost my credit" goes on in "credit card".
        """
        first, *more = other.split()
        ends = bool(more) and phrase.endswith(f" {first}") and not is_empty(more[0])
        return ends or within(phrase, other)

    kept: list[str] = []
    for phrase, count in candidates.items():
        longer = any(
            goes_on(phrase, other) and times >= _SAME * count for other, times in candidates.items()
        )
        if not longer and not any(within(phrase, other) or within(other, phrase) for other in kept):
            kept.append(phrase)
    return tuple(kept[:PHRASES])
