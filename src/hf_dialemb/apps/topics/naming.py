"""Name topics for what customers ask for in them, as "report a stolen card".

Requests are read from clauses by the lemmas of English words and the lists of ``words.toml``. A
topic's name is a request that its dialogues share and those of other topics lack.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from ...metrics.vectors import unit
from ..flow.step_names import (
    clauses,
    ends_in_a_letter,
    is_empty,
    is_syllable,
    is_unspaced,
    joined,
    words_of,
)

SMALL_TALK = "small talk"  # the name of a topic without requests
GREETINGS = "greetings only"  # of one in which nothing else is said
_VOWEL = re.compile(r"(?!uni|us[aeu]|eu|one)[aeiou]")
_KANA = re.compile(r"[\u3040-\u309f]")  # Japanese particles and endings
_SPELT = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")  # letters of syllables
_LONGEST_WORD = 30  # characters
_MOST_WORDS = 3  # of what a request is about
_LONGEST_RUN = 5  # letters of a name in a script without blanks
_LONGEST_SPELT = 10  # where letters make syllables
_TURNS = 8  # turns of a dialogue that requests are read from
_SHARED = 0.1  # least share of a topic's dialogues that make the request it is named for
_FREQUENT = 0.2  # least share of a request of a single word
_SURE = 0.85  # or its least score
_MOST_CONTRAST = 3.5
_LENGTHS = (0.6, 1.3, 1.5)  # weights of requests of one to three words
_VERB = 2.0  # weight of a verb that is always used
_WISH = 1.2  # of one such as "need"
_OFTEN = 0.25  # exponent of the share of a verb
_CANDIDATES = 40  # names of a topic whose vectors are compared
_LEAST_NEAR = 0.02  # floor of nearness
_NEAR = 0.05  # its offset
_CLOSE = 1.5  # its exponent
_SAME = 0.75  # share of a run's dialogues from which on a longer run stands for it


class Request(NamedTuple):
    """A request as somebody makes it."""

    about: tuple[str, ...]  # the lemmas of the words, by which requests are counted
    words: str  # as they were said, as in "stolen card"
    verb: str = ""  # with its preposition, as in "look for"; empty if there is none
    article: str = ""

    @property
    def name(self) -> str:
        """The request as a name has it, as in "report a stolen card"."""
        article = self.article
        if article in ("this", "that"):
            article = "the"
        elif article in ("a", "an"):
            article = "an" if _VOWEL.match(self.words) else "a"
        elif article in _words("quantities"):
            article = ""
        return " ".join(filter(None, (self.verb, article, self.words)))


@cache
def _words(role: str) -> frozenset[str]:
    """Return the words of a list of ``words.toml``."""
    lists = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
    return frozenset(lists[role].split())


@lru_cache(maxsize=200_000)
def _says_little(word: str) -> bool:
    """Return whether a word alone names nothing, as "the", "hellooo" or "don't"."""
    plain = re.sub(r"(.)\1{2,}", r"\1", word.replace("’", "'"))
    if len(plain) < 2 and not is_syllable(plain):
        return True
    return is_empty(plain) or plain in _words("fillers") or bool(_KANA.fullmatch(plain))


@lru_cache(maxsize=200_000)
def _lemmas(word: str) -> dict[str, tuple[str, ...]]:
    """Return the lemmas of an English word by part of speech; nothing for another word."""
    from lemminflect import getAllLemmas

    return dict(getAllLemmas(word))


@lru_cache(maxsize=200_000)
def _lemma(word: str) -> str:
    lemmas = _lemmas(word)
    is_participle = word.endswith(("ed", "ing"))
    order = ("VERB", "NOUN", "ADJ", "ADV") if is_participle else ("NOUN", "VERB", "ADJ", "ADV")
    return next((lemmas[part][0] for part in order if part in lemmas), word)


def lemmas_of(text: str) -> frozenset[str]:
    """Return the lemmas of the words of a text, without stop words."""
    return frozenset(_lemma(word) for word in words_of(text.lower()) if not is_empty(word))


def requests_in(text: str) -> Iterator[Request]:
    """Yield the requests in a text; those in languages other than English are runs of words."""
    for clause in clauses(text):
        words = [word for word in words_of(clause) if len(word) <= _LONGEST_WORD]
        known = sum(
            bool(_lemmas(word)) or (word.isascii() and _says_little(word)) for word in words
        )
        yield from _phrases(words) if 2 * known >= len(words) else _runs(words)


def _runs(words: Sequence[str]) -> Iterator[Request]:
    longest = _LONGEST_SPELT if _SPELT.match(words[0]) else _LONGEST_RUN
    for start in range(len(words)):
        for stop in range(start + 1, min(len(words), start + longest) + 1):
            run = words[start:stop]
            text = joined(run)
            fits = len(text) > 1 and not any(map(str.isdigit, text)) and not ends_in_a_letter(run)
            if fits and not _says_little(run[0]) and not _says_little(run[-1]):
                yield Request(tuple(run), text)


def _phrases(words: Sequence[str]) -> Iterator[Request]:
    """Yield what English words are about, with verbs where one stands before it."""
    place = 0
    while place < len(words):
        verb, begin = _verb_at(words, place)
        article, start, end = _object_at(words, begin)
        if start == end:  # nothing follows the verb
            verb = ""
            article, start, end = _object_at(words, place)
        yield from _parts(words[start:end], verb, article if verb else "")
        if start < end and not verb:
            yield from _participle(words, end)
        place = max(end, place + 1)


def _verb_at(words: Sequence[str], place: int) -> tuple[str, int]:
    """Return the verb at a place with its preposition, and where its object begins.

    The verb is empty where there is none.
    """
    word = words[place]
    before = words[place - 1] if place else "to"
    if before == "you" and place > 1:  # as in "can you"
        before = words[place - 2]
    denied = before in _words("negations")
    if word.endswith("ing"):
        leads = place == 0 or before in _words("before_gerunds")
    else:
        leads = denied or before in _words("before_verbs")
    if not leads or "VERB" not in _lemmas(word) or word in _words("auxiliaries"):
        return "", place
    lemma = _lemmas(word)["VERB"][0]
    is_past = not word.endswith("ing") and word not in (lemma, lemma + "s")
    verb = word if is_past else lemma
    begin = place + 1
    while begin < len(words) - 1 and words[begin] in _words("prepositions"):
        verb = f"{verb} {words[begin]}"
        begin += 1
    return f"not {verb}" if denied else verb, begin


def _object_at(words: Sequence[str], begin: int) -> tuple[str, int, int]:
    """Return the article of the noun phrase at a place, where its words begin, and where they end.

    They end where they begin if there is none.
    """
    article = ""
    start = begin
    while start < len(words) and words[start] in _words("determiners"):
        article = words[start]
        start += 1
    end = start
    while end < len(words) and end - start <= _MOST_WORDS and _may_modify(words[end]):
        is_joined = words[end + 1 : end + 2] in (["or"], ["and"])  # as in "lost or stolen card"
        end += 2 if is_joined and not _may_be_head(words[end]) else 1
    while end > start and not _may_be_head(words[end - 1]):
        end -= 1
    return article, start, end


def _may_modify(word: str) -> bool:
    parts = set(_lemmas(word))
    if parts == {"VERB"} and not word.endswith(("ed", "en", "ing", "t", "n")):
        return False
    is_adverb = "ADV" in parts and not parts & {"NOUN", "ADJ"}
    is_marked = is_empty(word) or any(map(str.isdigit, word))
    return not (is_adverb or is_marked or word in _words("negations") | _words("determiners"))


def _may_be_head(word: str) -> bool:
    is_unknown = not _lemmas(word) and not word.endswith(("ed", "ing"))
    return not _says_little(word) and ("NOUN" in _lemmas(word) or is_unknown)


def _parts(words: Sequence[str], verb: str, article: str) -> Iterator[Request]:
    """Yield the noun phrases within one; only those that end with it have its verb."""
    for start in range(len(words)):
        for stop in range(start + 1, min(len(words), start + _MOST_WORDS) + 1):
            part = words[start:stop]
            about = tuple(map(_lemma, part))
            text = joined(part)
            is_joined = "or" in part or "and" in part
            if is_joined or _says_little(part[0]) or not _may_be_head(part[-1]):
                continue
            if stop == len(words):
                yield Request(about, text, verb, article)
            elif "NOUN" in _lemmas(part[-1]):
                yield Request(about, text)


def _participle(words: Sequence[str], end: int) -> Iterator[Request]:
    """Yield "stolen card" for "my card was stolen", and "card not working" for what is denied.

    The noun phrase ends at ``end``.
    """
    place = end
    while place < len(words) and words[place] in _words("auxiliaries"):
        place += 1
    denied = place < len(words) and words[place] in _words("negations")
    place += denied
    if place in (end, len(words)) or _says_little(words[place]):
        return
    noun = words[end - 1]
    verb = words[place]
    lemma = _lemmas(verb).get("VERB", [""])[0]
    if denied and lemma:
        negation = "never" if words[place - 1] == "never" else "not"
        yield Request((_lemma(noun), negation, lemma), f"{noun} {negation} {verb}")
    elif lemma not in ("", verb) and not verb.endswith("ing"):
        yield Request((lemma, _lemma(noun)), f"{verb} {noun}")


class _Topic:
    """The requests of a topic's dialogues, each counted once a dialogue."""

    def __init__(self) -> None:
        self.size = self.silent = 0  # dialogues, and those without a request
        self.counts = Counter[tuple[str, ...]]()
        self.phrasings: dict[tuple[str, ...], dict[str, Counter[str]]] = {}  # by verb

    def add(self, turns: Sequence[str]) -> None:
        """Count the requests of a dialogue in its customer's turns."""
        requests = {request for text in turns[:_TURNS] for request in requests_in(text)}
        self.size += 1
        self.silent += not requests
        self.counts.update({request.about for request in requests})
        phrasings = {(request.about, "", request.words) for request in requests}
        phrasings |= {(own.about, own.verb, own.name) for own in requests if own.verb}
        for about, verb, name in phrasings:
            by_verb = self.phrasings.setdefault(about, {})
            by_verb.setdefault(verb, Counter())[name] += 1

    def names(self, about: tuple[str, ...]) -> dict[str, float]:
        """Return the weights of a request's names: as most often said, and after its verbs."""
        phrasings = {**self.phrasings[about]}
        count = self.counts[about]
        alone = _most_common(phrasings.pop(""))
        words = len(words_of(alone)) + is_unspaced(alone)
        weight = _LENGTHS[min(words, len(_LENGTHS)) - 1]
        names = {alone: weight}
        for verb, own in phrasings.items():
            often = own.total()
            if often < min(2, count):
                continue
            if _lemma(verb.split()[0]) not in _words("wishes"):
                names[_most_common(own)] = weight * _VERB * (often / count) ** _OFTEN
            elif verb in _words("fallbacks"):
                names[_most_common(own)] = weight * _WISH
        return names


def _most_common(counts: Mapping[str, int]) -> str:
    return min(counts, key=lambda text: (-counts[text], len(text), text))


def names_of(
    requests: Sequence[Sequence[str]],
    labels: NDArray[np.int32],
    means: NDArray[np.float32],
    encode: Callable[[list[str]], NDArray[np.float32]] | None = None,
) -> list[str]:
    """Name T topics for the requests that distinguish them, verb first, no two alike.

    A request of a share p of a topic's dialogues, and q of the others, scores ``sqrt(p) log(p /
    q)``, weighted by its number of words. With ``encode``, the score grows with the nearness of the
    name's vector to the topic's mean. Topics without requests are `GREETINGS`, those without a name
    `SMALL_TALK`.

    Args:
        requests: The customer's turns in each of N dialogues.
        labels: The topic of each dialogue, ``(N,)``.
        means: The mean vector of each topic, ``(T, D)``.
        encode: The vectors of phrases, ``(P, D)``.
    """
    topics = [_Topic() for _ in means]
    for turns, label in zip(requests, labels.tolist(), strict=True):
        topics[label].add(turns)
    everywhere = Counter[tuple[str, ...]]()
    for topic in topics:
        everywhere.update(topic.counts)
    scores = [_scores(topic, everywhere, len(requests)) for topic in topics]
    if encode is not None and len(topics) > 1 and any(scores):
        scores = _weighted_by_nearness(scores, means, encode)
    names: list[str] = []
    taken = set[frozenset[str]]()
    for topic, own in zip(topics, scores, strict=True):
        ranked = sorted(own, key=lambda name: (-round(own[name], 6), -len(name), name))
        new = [name for name in ranked if lemmas_of(name) not in taken]
        if 2 * topic.silent > topic.size:
            names.append(GREETINGS)
        else:
            names.append(next(iter(new + ranked), SMALL_TALK))
            taken.add(lemmas_of(names[-1]))
    return numbered_names(names)


def _scores(
    topic: _Topic, everywhere: Mapping[tuple[str, ...], int], dialogues: int
) -> dict[str, float]:
    """Return the `_CANDIDATES` best names of a topic with their scores."""
    scores = Counter[str]()
    longer = _longer_runs(topic.counts)
    for about, count in topic.counts.items():
        share = count / topic.size
        if count < max(min(2, topic.size), _SHARED * topic.size) or longer[about] >= _SAME * count:
            continue
        contrast = 1.0
        if topic.size < dialogues:
            elsewhere = (everywhere[about] - count + 0.5) / (dialogues - topic.size + 1)
            contrast = min(float(np.log(share / elsewhere)), _MOST_CONTRAST)
        score = float(np.sqrt(share)) * contrast
        if contrast > 0 and (len(about) > 1 or share >= _FREQUENT or score >= _SURE):
            for name, weight in topic.names(about).items():
                scores[name] = max(score * weight, scores[name])  # type: ignore[assignment]
    return dict(scores.most_common(_CANDIDATES))


def _longer_runs(counts: Mapping[tuple[str, ...], int]) -> Counter[tuple[str, ...]]:
    """Return the count of the most frequent run that is a letter longer than each, or zero."""
    longer = Counter[tuple[str, ...]]()
    for about, count in counts.items():
        if len(about) > 1 and all(map(is_unspaced, about)):
            longer[about[1:]] = max(longer[about[1:]], count)
            longer[about[:-1]] = max(longer[about[:-1]], count)
    return longer


def _weighted_by_nearness(
    scores: Sequence[dict[str, float]],
    means: NDArray[np.float32],
    encode: Callable[[list[str]], NDArray[np.float32]],
) -> list[dict[str, float]]:
    """Weight the scores of names by the cosine of their vectors with the topic's mean."""
    names = sorted({name for own in scores for name in own})
    vectors = unit(encode(names))
    if vectors.shape[1] != means.shape[1]:  # a dialogue's has parts by role, which phrases lack
        return list(scores)
    cosines = vectors @ unit(means).T
    nearness = cosines - cosines.mean(axis=1, keepdims=True)
    # letters that may be no word
    nearness[[all(map(is_syllable, words_of(name))) for name in names]] = 0.0
    weights = dict(zip(names, np.maximum(_LEAST_NEAR, _NEAR + nearness) ** _CLOSE, strict=True))
    return [
        {name: own[name] * float(weights[name][number]) for name in own}
        for number, own in enumerate(scores)
    ]


def numbered_names(names: Sequence[str]) -> list[str]:
    """Return names with a number behind each that came before."""
    counts = [names[: place + 1].count(name) for place, name in enumerate(names)]
    return [
        f"{name} ({count})" if count > 1 else name
        for name, count in zip(names, counts, strict=True)
    ]
