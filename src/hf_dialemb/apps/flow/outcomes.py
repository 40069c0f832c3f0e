"""Tell from the English words of an utterance whether something was done, failed or was refused.

The words were chosen on the dev splits of SGD, MultiWOZ and STAR.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from ...dialogue import ROLES
from ...metrics.vectors import unit
from .flow import Utterances
from .flow_clustering import Clustering, cluster, in_order

_UNABLE = (
    r"unable|unsuccessful\w*|fail(?:s|ed|ure)?|declined|rejected|denied|(?:went|gone) wrong"
    r"|not (?:be )?(?:able|success\w*|possible|confirmed|booked|made|done|reserved|scheduled)"
    r"|(?<!you )(?:can ?not|ca ?n['’]t|could ?n['’]t|could not)"
    r"(?! (?:\w+ )?(?:wait|remember|recall|believe|help but)\b)"
)
_TRIED = re.compile(rf"(?i)\b(?:{_UNABLE})\b")
_FAILED = re.compile(
    rf"(?i)\b(?:{_UNABLE}|unfortunately|regret\w*|apologi[sz]e|sorry(?! to hear| for| "
    r"about|.*\b(?:understand|catch)\b)"
    r"|unavailable|(?:fully|already|completely) booked|(?:booked|sold) (?:out|up|solid)|no longer"
    r"|(?<!you )(?:no|not|none|nothing|\w*n['’]t)(?: (?!need|want)[\w'’]+){0,4}? "
    r"(?:availab\w+|success\w+|pos+ible"
    r"|able|any\w*|find|found|made|match\w*|meets?|works?|serves?|go through))\b"
)
_DONE = re.compile(
    r"(?i)\b(?:success\w*|confirmed|booked|reserved|scheduled|rented|ordered|purchased|initiated|submitted|approved"
    r"|all set|done|on (?:its|it['’]s|the|their) way|reference number"
    r"|(?:have|has|been|was|is|are|i['’ ]+ve)(?: \w+){0,2} "
    r"(?:made|set|placed|paid|sent|added|transferred|processed|completed?))\b"
)
_OVER = re.compile(
    r"(?i)\b(?:thank\w*|thx|bye|goodbye|cheers|appreciate|take care|you['’ ]+re "
    r"welcome|welcome|see you|all i need\w*"
    r"|anything else|(?:glad|happy) (?:i|to (?:be|have|help|assist|serve))\b|pleasure|let me know"
    r"|(?:that['’ ]+s|that is|that will be|that would be) (?:all|it|everything)"
    r"|(?:have|enjoy) (?:a|the|your) (?:\w+ ){0,4}"
    r"(?:day|one|time|afternoon|evening|night|weekend|trip|ride|meal|stay))\b"
)
_GREETING = re.compile(
    r"(?i)\b(?:hello|hi|hey|good (?:morning|afternoon|evening)"
    r"|(?:how|what) (?:can|may|could) i (?:help|assist|do)(?: (?:for )?you)?(?: with)?(?: "
    r"today)?)\b"
)
_NO = re.compile(
    r"(?i)(?:no|nope|nah)\b(?! problem| worries)|maybe later\b"
    r"|not (?:(?:just|quite|right) )?(?:yet|now|today|at (?:the|this)|this "
    r"(?:time|moment|second))\b"
)
_DECLINED = re.compile(r"(?i)(?:do|does|wo) ?n['’]?t (?:need|want)\b|\bnot (?:need|want)\b")
_UNCLEAR = re.compile(
    r"(?i)\b(?:(?:do|did|could) ?n['’]t|(?:do|did|could|really) not|not) (?:\w+ "
    r")?(?:understand(?:ing)?|catch)\b"
)
_WRONG = re.compile(
    r"(?i)\b(?:(?:correct|right) answer (?:is|was|would)|answer\b.*\bwould have been"
    r"|answer (?:is|was) (?:incorrect|wrong|not (?:correct|right)))\b"
)
_WITHDRAWN = re.compile(
    r"(?i)\b(?:never ?mind(?=\W*$|[.,!;]| then| it)|cancel (?:it|that|this)|forget (?:about "
    r")?it|changed? my mind"
    r"|(?:do ?n['’]?t|do not) (?:need (?:\w+ ){1,4}any ?more"
    r"|(?:book|reserve|order|buy|schedule) (?:it|that|this|any\w*))"
    r"|(?:too|so) much (?:trouble|hassle)|(?:go|try|look|buy|book|order|shop) (?:\w+ "
    r"){0,2}(?:elsewhere|somewhere else)"
    r"|take my business|i(?:['’]ll| will)? give up|i(?:['’]d| would) rather (?:close|cancel|leave)"
    r"|i(?:['’]m| am|['’]ll| will) (?:go|going|switching|moving) to (?:another|a different)"
    r"|i(?:['’]ll| will) (?:just )?do (?:it|that|this) (?:myself|online))\b"
)
_ELSE = re.compile(r"(?i)\b(?:anything|nothing) (?:else|more)\b")
_YES = re.compile(r"(?i)(?:yes|yeah|yep|yup|sure|correct|right)\b")
_SAMPLED = 20  # texts that show a language
_READ = 300  # characters of these
_TOO_SHORT = 20  # characters
_CHANCE = 0.1  # that a text is in English
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+")
_MIN_WORDS = 4  # of a sentence with information
# of one outcome in a cluster that become a state; fewer join states of other clusters
_MIN_UTTERANCES = 5
# with a state that they join; chosen, like the next, on SGD and MultiWOZ without their test splits
_MIN_COSINE = 0.5
_MAX_DISTANCE = 0.7  # mean cosine distance within a state of those that join none
_ANSWERS = {"yes": _YES, "no": _NO}
_COURTESIES = ("greeting", "over")  # each is a single state per role

Part = tuple[int, str, int]
"""A state before it is numbered.

A cluster or -1, the kind of its utterances, and a number if there is no cluster.
"""


def is_english(texts: Sequence[str], language: str = "") -> bool:
    """Return whether these rules may read texts.

    A given language, such as "en" or "de-AT", decides. Without one, texts are taken for English if
    py3langid gives that a chance, or they are too short to tell.
    """
    if language:
        return language.lower().partition("-")[0] == "en"
    sample = " ".join(texts[:: max(1, len(texts) // _SAMPLED)])[:_READ]
    return len(sample) < _TOO_SHORT or dict(_identifier().rank(sample))["en"] >= _CHANCE


@cache
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@lru_cache(1 << 16)
def says_failed(text: str) -> bool:
    """Return whether a text says that something failed, and no other sentence that it was done."""
    return _FAILED.search(text) is not None and not says_done(text)


def says_tried(text: str) -> bool:
    """Return whether a text says that something was tried and failed, not only unavailable."""
    return says_failed(text) and _TRIED.search(text) is not None


@lru_cache(1 << 16)
def says_done(text: str) -> bool:
    """Return whether a sentence of a text that is no question or failure says it was done."""
    return any(_DONE.search(sentence) for sentence in _statements(text))


def _statements(text: str) -> list[str]:
    """List the sentences that are not questions and do not say that something failed."""
    sentences = (sentence.strip() for sentence in _BETWEEN_SENTENCES.split(text))
    return [
        sentence
        for sentence in sentences
        if not sentence.endswith("?") and not _FAILED.search(sentence)
    ]


@lru_cache(1 << 16)
def says_something(text: str) -> bool:
    """Return whether a text has information: more than failures, questions, thanks and goodbyes."""
    sentences = (sentence for sentence in _statements(text) if not says_over(sentence))
    return any(len(sentence.split()) >= _MIN_WORDS for sentence in sentences)


def says_over(text: str) -> bool:
    """Return whether a text contains thanks or a goodbye."""
    return _OVER.search(text) is not None


def says_only_over(text: str) -> bool:
    """Return whether a text is hardly more than thanks or a goodbye."""
    return says_over(text) and len(_OVER.sub("", text).split()) < _MIN_WORDS


def says_unclear(text: str) -> bool:
    """Return whether a text says that something was not understood."""
    return _UNCLEAR.search(text) is not None


def withdrawal(roles: Sequence[str], texts: Sequence[str]) -> int | None:
    """Return the index of the user's last turn that withdraws a request.

    None if there is no such turn, or if afterwards something is done or the user says more than
    thanks, goodbye or no.
    """
    for turn in reversed(range(len(texts))):
        by_user = roles[turn] == ROLES[0]
        if by_user and _WITHDRAWN.search(texts[turn]):
            return turn
        if says_done(texts[turn]) or (
            by_user and not (says_over(texts[turn]) or _NO.match(texts[turn]))
        ):
            return None
    return None


def _kind(role: str, text: str) -> str:
    """Return the outcome that an utterance reports, or which courtesy it is.

    Empty for anything else.
    """
    by_user = role == ROLES[0]
    if says_failed(text):
        return "failed"
    if says_unclear(text):
        return "unclear"
    if by_user and _WITHDRAWN.search(text):
        return "withdrawn"
    refuses = _DECLINED.search(text) or (_NO.match(text) and not says_over(text))
    if by_user and refuses and not _ELSE.search(text):
        return "refused"
    if not by_user and _WRONG.search(text):
        return "wrong"
    if not by_user and says_done(text):
        return "done"
    if _GREETING.match(text) and len(_GREETING.sub("", text).split()) < _MIN_WORDS:
        return "greeting"
    answers = _YES.match(text) or _NO.match(text) or text.rstrip().endswith("?")
    return "over" if says_only_over(text) and not answers else ""


def _parts(role: str, labels: Sequence[int], texts: Sequence[str]) -> list[Part]:
    """Return the part of each utterance.

    Courtesies, and an outcome that is rare in its cluster, get cluster -1.

    The rarer of yes and no is a kind of its own in each cluster that has both.
    """
    pairs = list(zip(labels, texts, strict=True))
    sizes = Counter(labels)
    yes, no, over = (
        Counter(label for label, text in pairs if says(text))
        for says in (_YES.match, _NO.match, says_over)
    )
    rarer = {label: "yes" if yes[label] < no[label] else "no" for label in yes.keys() & no.keys()}
    parts = []
    for label, text in pairs:
        kind = _kind(role, text)
        if not kind and label in rarer and _ANSWERS[rarer[label]].match(text):
            kind = rarer[label]
        # such a cluster keeps its thanks and goodbyes
        is_about_closing = 2 * over[label] > sizes[label]
        parts.append((label, "" if kind == "over" and is_about_closing else kind, 0))
    counts = Counter(parts)
    rare = {part for part, count in counts.items() if part[1] and count < _MIN_UTTERANCES}
    return [
        (-1 if part in rare or part[1] in _COURTESIES else part[0], *part[1:]) for part in parts
    ]


def _joined(parts: Sequence[Part], vectors: NDArray[np.float32]) -> list[Part]:
    """Let utterances without a cluster join the nearest state of their kind, if it is near.

    Cluster the rest.
    """
    result = list(parts)
    members = defaultdict[Part, list[int]](list)
    for row, part in enumerate(parts):
        members[part].append(row)
    states = {part: rows for part, rows in members.items() if part[0] >= 0}
    for (label, kind, _), rows in members.items():
        if label >= 0 or kind in _COURTESIES:
            continue
        left = rows
        same = [part for part in states if part[1] == kind]
        if same:
            means = unit(np.stack([vectors[states[part]].mean(axis=0) for part in same]))
            cosines = vectors[rows] @ means.T
            near = cosines.max(axis=1) >= _MIN_COSINE
            for position in np.flatnonzero(near):
                result[rows[position]] = same[int(cosines[position].argmax())]
            left = [row for row, joins in zip(rows, near, strict=True) if not joins]
        if left:
            labels = cluster(vectors[left], threshold=_MAX_DISTANCE).labels.tolist()
            for row, number in zip(left, labels, strict=True):
                result[row] = (-1, kind, number)
    return result


def outcomes_apart(
    clusterings: Mapping[str, Clustering], utterances: Utterances, vectors: NDArray[Any]
) -> dict[str, Clustering]:
    """Split the clusters of each role in which utterances report different outcomes.

    Failures, misunderstandings and the rarer of yes and no are separated; for users also refusals
    and withdrawals, for other roles also completed actions and wrong answers. Pure greetings become
    one cluster, and so do pure thanks and goodbyes, except where most of a cluster is such. An
    outcome of fewer than 5 utterances in a cluster joins the nearest state of the same outcome, at
    a cosine of at least 0.5; the rest is clustered. A role whose number of clusters or threshold
    was given keeps its clusters. The N utterances have vectors ``(N, D)``.
    """
    result = dict(clusterings)
    for role, rows in utterances.rows_by_role().items():
        clustering = clusterings[role]
        if not clustering.chosen:
            continue
        before = clustering.labels.tolist()
        texts = [utterances.texts[row] for row in rows]
        parts = _joined(_parts(role, before, texts), unit(vectors[rows]))
        if parts != [(label, "", 0) for label in before]:
            labels = in_order(parts)
            apart = f"Outcomes, yes and no, greetings and thanks stand apart: {labels.max() + 1}."
            sentence = f"{clustering.sentence} {apart}"
            result[role] = replace(clustering, labels=labels, sentence=sentence)
    return result
