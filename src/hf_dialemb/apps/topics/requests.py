"""Read what customers want out of what they say.

Verbs and what these are about, such as "report" and "stolen card".
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import regex

from ..flow.step_names import clauses, is_empty, is_syllable, joined, words_of

_VOWEL = re.compile(r"(?!uni|us[aeu]|eu|one)[aeiou]")
_KANA = re.compile(r"[\u3040-\u309f]")  # of Japanese particles and endings
_MOST_WORDS = 3  # of what a request is about
_LONGEST = 5  # letters, or words of a language that is not read, in a name
# of letters that are parts of syllables; of letters that are whole words
_LONGEST_SPELT, _LONGEST_WHOLE = (10, 8)
_SPELT = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")


class Request(NamedTuple):
    """What somebody wants, by basic forms and as it was said."""

    about: tuple[str, ...]  # the basic forms of the words
    words: str  # as they were said, as in "stolen card"
    verb: str = ""  # with its preposition, as in "look for"; empty if there is none
    article: str = ""  # what stands between both
    # whether it begins and ends where words do, as far as a script without blanks shows it
    whole_words: bool = True

    @property
    def whole(self) -> str:
        """The request as a name has it, as "report a stolen card"."""
        article = "the" if self.article in ("this", "that") else self.article
        if article in ("a", "an"):
            article = "an" if _VOWEL.match(self.words) else "a"
        elif article in words_that("quantities"):
            article = ""
        return " ".join(filter(None, (self.verb, article, self.words)))


@cache
def words_that(role: str) -> frozenset[str]:
    """Return the words of a list of ``words.toml``."""
    lists = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
    return frozenset(lists[role].split())


@cache
def _fillers() -> frozenset[str]:
    return frozenset(map(_once, words_that("fillers")))


def _once(word: str) -> str:
    return re.sub(r"(.)\1+", r"\1", word.replace("’", "'").replace("'", ""))


@lru_cache(maxsize=200_000)
def says_little(word: str) -> bool:
    """Return whether a word alone names nothing, as "the", "hellooo" or "don't"."""
    plain = word.replace("’", "'")
    short = len(plain) < 2 and not is_syllable(plain)
    return (
        short
        or is_empty(plain)
        or _once(plain) in _fillers()
        or plain in words_that("chinese")
        or bool(_KANA.fullmatch(plain))
    )


@lru_cache(maxsize=200_000)
def _lemmas(word: str) -> dict[str, tuple[str, ...]]:
    from lemminflect import getAllLemmas

    lemmas: dict[str, tuple[str, ...]] = getAllLemmas(word)
    return lemmas


@lru_cache(maxsize=200_000)
def basic(word: str) -> str:
    """Return the basic form of an English word, a noun's first; of another word itself."""
    lemmas = _lemmas(word)
    kinds = (
        ("VERB", "NOUN", "ADJ", "ADV")
        if word.endswith(("ed", "ing"))
        else ("NOUN", "VERB", "ADJ", "ADV")
    )
    return next((lemmas[kind][0] for kind in kinds if kind in lemmas), word)


def requests_within(text: str) -> Iterator[Request]:
    """Find what a text may want, by clauses; texts of other languages give runs of words."""
    for clause in clauses(text):
        words = [word for word in words_of(clause) if len(word) <= 30]
        known = sum(bool(_lemmas(word)) or (word.isascii() and says_little(word)) for word in words)
        if 2 * known < len(words):
            yield from _runs(words)
        else:
            yield from _read(words)


def _runs(words: Sequence[str]) -> Iterator[Request]:
    longest = _LONGEST_SPELT if words and _SPELT.match(words[0]) else _LONGEST
    edges = [_is_edge(words, place) for place in range(len(words) + 1)]
    for start in range(len(words)):
        for stop in range(start + 1, min(len(words), start + _LONGEST_WHOLE) + 1):
            run, whole = words[start:stop], edges[start] and edges[stop]
            plain = not any(character.isdigit() for word in run for character in word)
            inner = sum(map(says_little, run))
            fits = stop - start <= (
                longest if not whole or not is_syllable(run[0]) else _LONGEST_WHOLE
            )
            if (
                fits
                and plain
                and len(joined(run)) > 1
                and inner < 2
                and not (says_little(run[0]) or says_little(run[-1]))
            ):
                yield Request(tuple(run), joined(run), whole_words=whole)


def _is_edge(words: Sequence[str], place: int) -> bool:
    """Return whether a word begins or ends at a place.

    Blanks do that, other scripts, and letters that say little.
    """
    if not 0 < place < len(words):
        return True
    beside = words[place - 1], words[place]
    return not all(map(is_syllable, beside)) or any(map(says_little, beside))


def _read(words: Sequence[str]) -> Iterator[Request]:
    place = 0
    while place < len(words):
        if _is_verb(words, place):
            verb, begin = _verb_at(words, place)
            article, end = _object_at(words, begin)
            if end > begin:
                yield from _spans(words, begin, end, verb, article)
                place = end
                continue
            if (
                begin < len(words)
                and not says_little(words[begin])
                and set(_lemmas(words[begin])) & {"ADV", "ADJ"}
            ):
                yield Request((basic(words[place]), basic(words[begin])), f"{verb} {words[begin]}")
        article, end = _object_at(words, place)
        if end > place:
            yield from _spans(words, place, end)
            yield from _passive(words, place, end)
        place = max(end, place + 1)


def _is_verb(words: Sequence[str], place: int) -> bool:
    if "VERB" not in _lemmas(words[place]) or words[place] in words_that("auxiliaries"):
        return False
    before = words[place - 1] if place else "to"
    if words[place].endswith("ing"):
        return not place or before in words_that("before_gerunds")
    if before == "you":
        return place > 1 and words[place - 2] in words_that("before_you")
    return before in words_that("before_verbs") or before in words_that("negations")


def _verb_at(words: Sequence[str], place: int) -> tuple[str, int]:
    """Return a verb with its preposition as a name has it, and where what it is about begins."""
    word = words[place]
    lemma = _lemmas(word)["VERB"][0]
    past = word != lemma and not word.endswith("ing") and word != lemma + "s"
    verb, begin = word if past else lemma, place + 1
    if begin < len(words) and words[begin] in ("me", "us"):
        begin += 1
    for _ in range(2):
        if (
            begin < len(words) - 1
            and words[begin] in words_that("prepositions")
            and words[begin] != words[begin - 1]
        ):
            verb, begin = f"{verb} {words[begin]}", begin + 1
    denied = place > 0 and (
        words[place - 1] in words_that("negations") or words[place - 1].endswith("n't")
    )
    return (f"not {verb}" if denied else verb), begin


def _object_at(words: Sequence[str], begin: int) -> tuple[str, int]:
    """Return the article of what stands at a place, and where it ends, which is the place if
    nothing does.
    """
    article = ""
    start = begin
    while start < len(words) and words[start] in words_that("determiners"):
        article, start = words[start], start + 1
    end = start
    while end < len(words) and end - start <= _MOST_WORDS and _may_modify(words[end]):
        joins = (
            end + 2 < len(words) and words[end + 1] in ("or", "and") and _may_modify(words[end + 2])
        )
        end += 2 if joins and not _may_be_head(words[end]) else 1
    while end > start and not _may_be_head(words[end - 1]):
        end -= 1
    return article, (end if end > start else begin)


def _may_modify(word: str) -> bool:
    kinds = _lemmas(word)
    adverb = "ADV" in kinds and not {"NOUN", "ADJ"} & set(kinds)
    bare = set(kinds) == {"VERB"} and not word.endswith(("ed", "en", "ing", "t", "n"))
    return not (
        is_empty(word)
        or any(map(str.isdigit, word))
        or adverb
        or bare
        or word in words_that("determiners") | words_that("negations")
    )


def _may_be_head(word: str) -> bool:
    kinds = _lemmas(word)
    return not says_little(word) and (
        "NOUN" in kinds or (not kinds and not word.endswith(("ed", "ing")))
    )


def _spans(
    words: Sequence[str], begin: int, end: int, verb: str = "", article: str = ""
) -> Iterator[Request]:
    while begin < end and words[begin] in words_that("determiners"):
        begin += 1
    for start in range(begin, end):
        for stop in range(start + 1, min(end, start + _MOST_WORDS) + 1):
            run = words[start:stop]
            own = stop == end  # only what ends with the whole is what the verb is about
            head = _may_be_head(run[-1]) and (own or "NOUN" in _lemmas(run[-1]))
            if not head or says_little(run[0]) or "or" in run or "and" in run:
                continue
            yield Request(
                tuple(map(basic, run)), joined(run), verb if own else "", article if own else ""
            )


def _passive(words: Sequence[str], begin: int, end: int) -> Iterator[Request]:
    """Find "stolen card" in "my card was stolen", and "card not working" in "my card is not
    working".
    """
    place = end
    while place < len(words) and (
        words[place] in words_that("auxiliaries") or words[place] in ("has", "have", "had")
    ):
        place += 1
    denied = place < len(words) and words[place] in words_that("negations")
    if place == end and not denied:
        return
    place += denied
    if (
        place < len(words)
        and set(_lemmas(words[place])) & {"VERB"}
        and not says_little(words[place])
    ):
        word, head = words[place], words[end - 1]
        lemma = _lemmas(word)["VERB"][0]
        if denied:
            never = "never" if words[place - 1] == "never" else "not"
            yield Request((basic(head), never, lemma), f"{head} {never} {word}")
        elif word != lemma and not word.endswith("ing"):
            yield Request((lemma, basic(head)), f"{word} {head}")
