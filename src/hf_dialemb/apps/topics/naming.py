"""Name topics for what customers ask for in them, and describe them by phrases that tell them from
the others.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dialogue import ROLES, Dialogue
from ...metrics.vectors import unit
from ..flow.step_names import best_phrases, clauses, is_empty, is_unspaced, shortened, words_of
from .requests import Request, basic, requests_within, words_that
from .topic_clustering import in_order_of_size

REQUESTS = 8  # turns of the customer's that a name may come from, the first that are no set phrases
# turns in which a conversation says what it is about, and what the others count beside these
_EARLY, _LATE = (2, 0.5)
_SHARE = 0.1  # least share of a topic's dialogues that ask for what it is named for
# what a single word is said in, or scores, at least: others come up by chance
_MANY, _SURE = (0.2, 0.85)
_WITH_VERB = 0.05  # least share of these that say it with the name's verb
_SPREAD = 0.5  # share of the topics from which on what is said in them is a set phrase
_RARE = 3.5  # most that contrast counts
_LENGTHS = (0.6, 1.3, 1.5)  # what a name of one to three words is worth without its verb
_VERBS = 4  # most frequent verbs of what is asked for that are compared
# what a verb adds if it is always said, and one as "need" if it is said at all
_VERB, _WISH = (2.0, 1.2)
_OFTEN = 0.25  # the exponent of how often a verb is said
# least that closeness counts, what is added to it, and its exponent
_LEAST_NEAR, _NEAR, _CLOSE = (0.02, 0.05, 1.5)
_RIVALS = 40  # names of a topic whose own vectors are compared
# what a name of several words is worth at least, beside the best of a single word that is one of
# them
_LONGER = 0.4
_WORDS = 5  # of a name at most
# what a name is worth at least, beside the best if that is about the same as another topic's name
_ALIKE = 0.8
SMALL_TALK, GREETINGS = "small talk", "greetings only"
# share of a run's dialogues from which on a longer one stands for it; worth of cut words
_SAME, _CUT = (0.75, 0.6)
_FEWEST = 3  # dialogues that hold a set phrase
_MOST = 2.0
_READ = 300  # dialogues of a topic that its phrases and its name come from
_ASKERS = 20  # dialogues of a topic among whose first requests the most typical is sought
_SENTENCE = 160  # characters of it


def text_of(dialogue: Dialogue, role: str = "") -> str:
    """Join the turns of a dialogue, or of a role; bars keep phrases from going across turns."""
    return " | ".join(turn.content for turn in dialogue.turns if not role or turn.role == role)


def sampled(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return at most `_READ` rows, at equal steps from the first to the last."""
    return rows[np.linspace(0, len(rows) - 1, min(_READ, len(rows))).astype(np.intp)]


def telling_phrases(groups: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the `best_phrases` that distinguish each of G groups of long texts from the others.

    A phrase that a share p of the group's texts holds, and q of the others, is worth ``log(p /
    q)``, at most `_MOST`. Phrases that are no more frequent than elsewhere, hold a number or are a
    letter are left out. A single group has its frequent phrases.
    """

    def worth(phrases: NDArray[Any], counts: Any) -> NDArray[Any]:
        worded = [
            len(phrase) > 1 and bool(re.fullmatch(r"\D*[^\W\d_]\D*", phrase)) for phrase in phrases
        ]
        sizes = np.array([len(group) for group in groups], dtype=np.float64)
        size, often = np.repeat(sizes, np.diff(counts.indptr)), counts.data
        totals = np.asarray(counts.sum(axis=0)).ravel()[counts.indices]
        elsewhere = (totals - often + 0.5) / (sizes.sum() - size + 1)
        worths = np.log(often / size / elsewhere) if len(groups) > 1 else np.ones(len(often))
        kept: NDArray[Any] = (
            np.minimum(worths, _MOST) * np.array(worded, dtype=bool)[counts.indices]
        )
        return kept

    return best_phrases(groups, worth)


def set_phrases(dialogues: Sequence[Dialogue], labels: NDArray[np.int32]) -> frozenset[str]:
    """Return what is said in at least three dialogues and half of the topics, as greetings and
    agents' phrases are.

    With a single topic, it is what half of its dialogues hold in their first or last turn.
    """
    topics = int(labels.max()) + 1
    if topics == 1:
        ends = Counter(
            c
            for own in dialogues
            for c in {c for t in (0, -1) for c in clauses(own.turns[t].content)}
        )
        return frozenset(
            clause
            for clause, count in ends.items()
            if count >= max(_FEWEST, len(dialogues) * _SPREAD)
        )
    counts, spread = Counter[str](), dict[str, set[int]]()
    for dialogue, label in zip(dialogues, labels.tolist(), strict=True):
        for clause in {clause for turn in dialogue.turns for clause in clauses(turn.content)}:
            counts[clause] += 1
            spread.setdefault(clause, set()).add(label)
    least = max(2, topics * _SPREAD)
    return frozenset(
        clause for clause, own in spread.items() if counts[clause] >= _FEWEST and len(own) >= least
    )


def with_small_talk_joined(
    dialogues: Sequence[Dialogue], labels: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Join the topics, labels ``(N,)``, in which most dialogues ask for nothing, and those without
    a name.

    Topic 0 stays the largest.
    """
    while True:
        count = int(labels.max()) + 1
        rows = np.concatenate(
            [sampled(np.flatnonzero(labels == number)) for number in range(count)]
        )
        drawn = [dialogues[row] for row in rows]
        left_out = set_phrases(drawn, labels[rows])
        requests = [without_set_phrases(own, left_out, customer(own)) for own in drawn]
        names = names_of(requests, labels[rows], np.zeros((count, 1), dtype=np.float32))
        joined = np.arange(count)
        for kind in (GREETINGS, SMALL_TALK):
            alike = [number for number, name in enumerate(names) if name.startswith(kind)]
            joined[alike] = alike[0] if alike else 0
        if (
            joined == np.arange(count)
        ).all():  # what is joined changes what others hold, and with it their names
            return labels
        labels = in_order_of_size(joined[labels].astype(np.int32))


def without_set_phrases(dialogue: Dialogue, left_out: Collection[str], role: str = "") -> list[str]:
    """Return what is said in each turn of a dialogue, or of a role, but for set phrases.

    Turns of nothing else go.
    """
    turns = (turn for turn in dialogue.turns if not role or turn.role == role)
    kept = (
        [clause for clause in clauses(turn.content) if clause not in left_out] for turn in turns
    )
    return [" | ".join(of_turn) for of_turn in kept if of_turn]


def typical_requests(
    groups: Sequence[Sequence[Dialogue]],
    names: Sequence[str],
    left_out: Collection[str],
    encode: Callable[[list[str]], NDArray[np.float32]] | None = None,
) -> list[str]:
    """Return the most typical request of each topic, as a customer said it.

    Empty where nobody wants anything.

    Groups have their dialogues, the most typical first. Of the first requests that hold the words
    of the topic's name, or of all where none does, it is the one nearest to their mean as
    ``encode`` places them, ``(P, D)``, or the first. A turn of nothing but the set phrases that are
    left out is no request.
    """
    requests = []
    for name, group in zip(names, groups, strict=True):
        wanted = frozenset() if name.startswith((GREETINGS, SMALL_TALK)) else _basics(name)
        firsts = (
            [_first_request(dialogue, left_out, wanted) for dialogue in group[:_ASKERS]]
            if wanted
            else []
        )
        holding = [text for text in firsts if wanted <= _basics(text)]
        requests.append(holding or list(filter(None, firsts)))
    if encode is None or not any(requests):
        return [own[0] if own else "" for own in requests]
    texts = sorted({text for own in requests for text in own})
    vectors = dict(zip(texts, unit(encode(texts)), strict=True))
    result = []
    for own in requests:
        near = np.stack([vectors[text] for text in own]) if own else np.zeros((0, 1))
        nearness = np.round(near @ near.sum(axis=0), 5)
        result.append(own[int(nearness.argmax())] if own else "")
    return result


def _first_request(
    dialogue: Dialogue, left_out: Collection[str], wanted: frozenset[str] = frozenset()
) -> str:
    """Return the first turn of the customer's that wants something and holds some words, or else
    the first of these.
    """
    role, first = customer(dialogue), ""
    for turn in (turn for turn in dialogue.turns if not role or turn.role == role):
        kept = " | ".join(clause for clause in clauses(turn.content) if clause not in left_out)
        if any(requests_within(kept)):
            text = shortened(" ".join(turn.content.split()), _SENTENCE)
            if wanted <= _basics(text):
                return text
            first = first or text
    return first


def _basics(text: str) -> frozenset[str]:
    return frozenset(basic(word) for word in words_of(text.lower()) if not is_empty(word))


def customer(dialogue: Dialogue) -> str:
    """Return the role whose wishes name a topic: the user's, or everybody's if no user speaks."""
    return ROLES[0] if ROLES[0] in dialogue.roles else ""


class _Asked:
    """What the dialogues of a topic ask for, and how often, each counted once a dialogue."""

    def __init__(self) -> None:
        self.held = Counter[tuple[str, ...]]()
        self.early = Counter[tuple[str, ...]]()
        self.whole = Counter[tuple[str, ...]]()
        self.said: dict[tuple[str, ...], Counter[str]] = {}
        self.verbs: dict[tuple[str, ...], dict[str, Counter[str]]] = {}

    def add(self, turns: Sequence[Sequence[Request]]) -> None:
        """Count the requests of a dialogue, turn by turn."""
        requests = [request for turn in turns for request in turn]
        self.held.update({request.about for request in requests})
        self.whole.update({request.about for request in requests if request.whole_words})
        self.early.update({request.about for turn in turns[:_EARLY] for request in turn})
        for about, words in {(request.about, request.words) for request in requests}:
            self.said.setdefault(about, Counter())[words] += 1
        wholes = {
            (request.about, request.verb, request.whole) for request in requests if request.verb
        }
        for about, verb, whole in wholes:
            self.verbs.setdefault(about, {}).setdefault(verb, Counter())[whole] += 1

    def names(self, about: tuple[str, ...]) -> dict[str, float]:
        """Return names for what is asked for, as it is most often said, alone and after verbs, and
        their worth.
        """
        alone, held = _most(self.said[about]), self.held[about]
        length = len(words_of(alone)) + is_unspaced(alone)
        worth = _LENGTHS[min(length, len(_LENGTHS)) - 1]
        names, wholes = {alone: worth}, self.verbs.get(about, {})
        often = Counter({verb: wholes[verb].total() for verb in wholes})
        for verb, count in often.most_common(_VERBS):
            wish = basic(verb.split()[0]) in words_that("wishes")
            if count >= max(min(2, held), _WITH_VERB * held) and (
                not wish or verb in words_that("fallbacks")
            ):
                names[_most(wholes[verb])] = worth * (
                    _WISH if wish else _VERB * (count / held) ** _OFTEN
                )
        return names


def _most(counts: Counter[str]) -> str:
    return min(counts, key=lambda text: (-counts[text], len(text), text))


def names_of(
    requests: Sequence[Sequence[str]],
    labels: NDArray[np.int32],
    means: NDArray[np.float32],
    encode: Callable[[list[str]], NDArray[np.float32]] | None = None,
) -> list[str]:
    """Name T topics for what is asked for in them and seldom in others, no two alike, the verb
    first if there is one.

    ``requests`` is what the customer of each dialogue says, turn by turn, ``labels`` ``(N,)`` its
    topic. What a share p of a topic's dialogues asks for, and q of the others, scores ``sqrt(p)
    log(p / q)``, more if it has several words. With ``encode`` it scores more the nearer the name's
    own vector is to the mean of the topic, of ``(T, D)``, than to the others'.
    """
    sizes = np.bincount(labels, minlength=len(means))
    asked, empty = [_Asked() for _ in sizes], np.zeros(len(sizes))
    for turns, label in zip(requests, labels.tolist(), strict=True):
        own = [list(requests_within(text)) for text in turns[:REQUESTS]]
        empty[label] += not any(own)
        asked[label].add(own)
    everywhere = Counter[tuple[str, ...]]()
    for topic in asked:
        everywhere.update(topic.held)
    rivals = [
        _best(topic, int(size), everywhere, sizes) for topic, size in zip(asked, sizes, strict=True)
    ]
    if encode is not None and len(means) > 1 and any(rivals):
        rivals = _by_closeness(rivals, means, encode)
    return _different(rivals, (empty > sizes / 2).tolist())


def _best(
    topic: _Asked, size: int, everywhere: Counter[tuple[str, ...]], sizes: NDArray[np.int64]
) -> dict[str, float]:
    """Return the `_RIVALS` best names of a topic of some size, with their scores."""
    scores: dict[str, float] = {}
    longer = _longer_runs(topic.held)
    for about, held in topic.held.items():
        whole = topic.whole[about] / held
        if held < max(min(2, size), _SHARE * size) or (
            longer[about] >= _SAME * held and whole < _SAME
        ):
            continue
        elsewhere = (everywhere[about] - held + 0.5) / (sizes.sum() - size + 1)
        contrast = min(float(np.log(held / size / elsewhere)), _RARE) if len(sizes) > 1 else 1.0
        evidence = (
            float(np.sqrt(held / size))
            * contrast
            * (_LATE + (1 - _LATE) * topic.early[about] / held)
        )
        if contrast > 0 and (len(about) > 1 or held >= _MANY * size or evidence >= _SURE):
            score = evidence * (_CUT + (1 - _CUT) * whole)
            for name, worth in topic.names(about).items():
                scores[name] = max(score * worth, scores.get(name, 0.0))
    return dict(
        sorted(scores.items(), key=lambda item: (-item[1], -len(item[0]), item[0]))[:_RIVALS]
    )


def _longer_runs(held: Mapping[tuple[str, ...], int]) -> Counter[tuple[str, ...]]:
    """Count the most frequent run that is a letter longer, of runs of letters without blanks."""
    longer = Counter[tuple[str, ...]]()
    for about, count in held.items():
        if len(about) > 1 and all(map(is_unspaced, about)):
            for part in (about[1:], about[:-1]):
                longer[part] = max(longer[part], count)
    return longer


def _by_closeness(
    rivals: Sequence[dict[str, float]],
    means: NDArray[np.float32],
    encode: Callable[[list[str]], NDArray[np.float32]],
) -> list[dict[str, float]]:
    names = sorted({name for own in rivals for name in own})
    vectors = unit(encode(names))
    if vectors.shape[1] != means.shape[1]:  # a vector of speakers, beside which a name has none
        return list(rivals)
    cosines = vectors @ unit(means).T
    nearer = dict(zip(names, cosines - cosines.mean(axis=1, keepdims=True), strict=True))

    def worth(name: str, number: int) -> float:
        """Return what closeness makes of a score.

        Letters without blanks may be no words, and have the mean.
        """
        near = 0.0 if is_unspaced(name) else float(nearer[name][number])
        return float(max(_LEAST_NEAR, _NEAR + near) ** _CLOSE)

    scored = (
        {name: score * worth(name, number) for name, score in own.items()}
        for number, own in enumerate(rivals)
    )
    return [
        dict(sorted(own.items(), key=lambda item: (-round(item[1], 6), -len(item[0]), item[0])))
        for own in scored
    ]


def _different(rivals: Sequence[Mapping[str, float]], empty: Sequence[bool]) -> list[str]:
    """Take the best name of each topic that no topic before it has.

    Topics without one are small talk.
    """
    taken, objects = set[frozenset[str]](), set[frozenset[str]]()
    names: list[str] = []
    for own, says_nothing in zip(rivals, empty, strict=True):
        words = {name: _basics(name) for name in own}
        new = [] if says_nothing else [name for name in own if words[name] not in taken]
        other = [name for name in new if not any(known <= words[name] for known in objects)]
        best = _longer(
            other if other and own[other[0]] >= _ALIKE * own[new[0]] else new, own, words
        )
        best = best or ("" if says_nothing else next(iter(own), ""))
        if best:
            taken.add(_basics(best))
            objects.add(frozenset(basic(word) for word in words_of(best)[-1:]))
        names.append(best or (GREETINGS if says_nothing else SMALL_TALK))
    return numbered_names(names)


def _longer(
    names: Sequence[str], scores: Mapping[str, float], words: Mapping[str, frozenset[str]]
) -> str:
    """Return the first name.

    For a single word one of several that holds it, or with another beside it, if as good.
    """
    best = names[0] if names else ""
    if not names or len(words_of(best)) + is_unspaced(best) > 1:
        return best
    good = [name for name in names[1:] if scores[name] >= _LONGER * scores[best]]
    longer = next((name for name in good if words[best] < words[name]), "")
    other = next(
        (name for name in good if not words[best] & words[name] and len(words[name]) < _WORDS), ""
    )
    return longer or ", ".join(filter(None, (best, other)))


def numbered_names(names: Sequence[str]) -> list[str]:
    """Put a number behind a name that came before."""
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return result
