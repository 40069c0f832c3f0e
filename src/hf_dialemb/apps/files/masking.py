"""Masking: placeholders for what may say who a person is. No guarantee.

What no rule and no list knows stays.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lemminflect import getAllLemmas
from phonenumbers import PhoneNumberMatcher

from ...dialogue import Dialogue
from .account import texts_in
from .roles import WELL_KNOWN

# whose national numbers are known
_REGIONS = (None, "US", "GB", "DE", "FR", "ES", "IT", "PT", "NL", "BR", "IN", "AU")
_IS = (
    r"\w*[^\w+(]{0,5}(?:(?:number|nummer|n[or°º]|n[uú]m[eé]ro|is|ist|es|est|at|on|"
    r"c[ou]rr?i?ente?|courant|bancaire|bancaria)[^\w+(]{1,5}){0,3}"
)
_BANK = r"account|acct|konto|compte|cuenta|cont[oa](?!\w)|rekening|sort code|blz"
_TELEPHONE = (
    "contact|phone|tel|mobile?|cell|whatsapp|fax|call me|handy|t[eé]l[eé]f|m[oó]vil|celular"
)
_GAP = r"[ \xa0\u202f.-]{0,2}"  # between the groups of a number
_RULES = [  # what is replaced is the group, or all
    (kind, re.compile(rule, re.IGNORECASE))
    for kind, rule in (
        ("email", r"(?<![\w.+%'-])[\w.+%'-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"),
        ("email", r"\b[\w.-]{1,64} \W?at\W? [\w-]{1,63} \W?dot\W? \w{2,3}\b"),
        (
            "link",
            r"(?:\b(?:https?|ftp)://|\bwww\.|\b[\w-]{1,63}\.(?:com|org|net|io|de|fr|es|it|nl|uk)/)"
            r"\S*[\w/]",
        ),
        ("link", r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)"),
        (
            "link",
            r"(?<![\w.:])(?=[\w:]{0,30}::|(?:\w+:){4})(?:[\da-f]{1,4}:+){2,7}[\da-f]{1,4}(?![\w:])",
        ),
        ("account", rf"\b[A-Z]{{2}}\d\d(?:{_GAP}[A-Z\d]{{4}}){{2,7}}(?:{_GAP}[A-Z\d]{{1,4}})?\b"),
        ("card", rf"(?<!\d)[2-6](?:{_GAP}\d){{12,18}}(?!\d)"),
        ("account", rf"\b(?:{_BANK}){_IS}(\d(?:{_GAP}\d){{5,19}})"),
        ("phone", rf"\b(?:{_TELEPHONE}){_IS}(\+?\(?\d(?:[ \xa0()/.-]{{0,2}}\d){{5,14}})"),
    )
]
_NUMBER = re.compile(  # with what stands around it, which phonenumbers looks at
    r"[^\d\n]?[+(]{0,2}\d(?:[^\w\n]{0,3}\d){6,30}(?:\W{0,3}(?:ext|x)\W{0,3}\d{1,6})?[^\d\n]?",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?<!\d)(?:\d{1,2}([./-])\d{1,2}\1(?:19|20)\d\d|(?:19|20)\d\d([./-])\d\d\2\d\d)(?!\d)"
)
_TITLE = (
    r"\b(?:Mr|Mrs|Ms|Dr|Prof|Herrn?|Frau|Monsieur|Mme|Sra?|Señora?|Signora?|Senhora?|Mevrouw)\b\.?"
)
_OF = r"(?:(?:v[ao]n|d[aeio]|de[lrn]|dos|la|ter?|ten) ){0,2}"
_NAME = rf"(?:[^\W\d_a-zß-ÿ]\. ?){{0,2}}{_OF}[^\W\d_a-zß-ÿ][\w'’-]+"
_NAMES = rf"(?:{_TITLE} ){{0,2}}({_NAME}(?: {_NAME}){{0,2}})"
_INTRODUCED = re.compile(
    r"(?i:\b(?:my name(?:'s| is)|ich heiße|mein name ist|je m'appelle|mon nom est|me llamo|mi "
    r"nombre es|mi chiamo|me chamo|meu nome é|mijn naam is|ik heet)) "
    rf"(?:{_NAMES}|((?!not |on )\w+(?= ?(?:[.,!?;]|$)| (?:and|und|y|et|e|en)\b)))"
    rf"|(?i:\bthis is) {_NAMES} (?:speaking|here|calling|from)\b|{_TITLE} ({_NAME})"
)
_PERSON = re.compile(  # the path of a field of metadata whose values are names
    r"(?:^|[\W_])(?:agent|author|assignee|caller|client|customer|requester)(?:[^.]?name)?(?:\[\])*$"
    r"|(?:^|\.)(?:(?:first|last|full|user)[^.]?)?name(?:\[\])*$",
    re.IGNORECASE,
)
_NO_NAME = {
    *("system", "speaker", "first", "second", "unknown", "none", "null", "the", "and", "desk"),
    *("van", "von", "der", "den", "del", *WELL_KNOWN),
    *("email", "phone", "card", "account", "link", "name"),
}


def mask(
    dialogues: Iterable[Dialogue], names: Iterable[str] = (), counts: Counter[str] | None = None
) -> Iterator[Dialogue]:
    """Put placeholders for what may tell who it is.

    They are ``[email]``, ``[phone]``, ``[card]``, ``[account]``, ``[link]`` and ``[name]``. Texts,
    speakers' names, values of slots, metadata at any depth and ids are masked. Names are those that
    are given, those of the dialogue's speakers, and those after words such as "my name is" or
    "Mrs."; a lower-case word of English is no name. This is no guarantee: names that nobody lists,
    addresses, and what is spelled out stay. Read the result. The placeholders are added to
    ``counts``, by kind.
    """
    counts = Counter() if counts is None else counts
    ids = Counter[str]()
    given = [*names]
    for dialogue in dialogues:
        metadata = dict(dialogue.metadata)
        persons = [text for path, text in texts_in(metadata, "") if _PERSON.search(path)]
        for turn in dialogue.turns:
            introduced = _INTRODUCED.finditer(turn.content)
            persons += [turn.name, *(match[match.lastindex or 0] for match in introduced)]
        masking = _Masking(_words(given + persons), counts)
        turns = [
            replace(
                turn,
                content=masking.text(turn.content),
                name=masking.value(turn.name, "name"),
                slots=tuple((slot, masking.text(value)) for slot, value in turn.slots),
            )
            for turn in dialogue.turns
        ]
        id = masking.text(dialogue.id, regions=(None,))
        ids[id] += id != dialogue.id
        id = id if id == dialogue.id else f"{id}-{ids[id]}"  # ids stay different
        yield replace(dialogue, turns=tuple(turns), id=id, metadata=masking.value(metadata, ""))


@dataclass
class _Masking:
    """Masks the values of one dialogue, whose names are known by their words."""

    words: set[str]
    counts: Counter[str]

    def value(self, value: Any, path: str) -> Any:
        """Mask a value of a field at any depth; a number only as a whole."""
        if isinstance(value, Mapping):
            return {key: self.value(inner, str(key)) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner, path) for inner in value]
        if isinstance(value, str):
            # "bob" is "Bob", where it must be a name
            is_name = _PERSON.search(path) and _words([value])
            return self.text(value.title() if is_name else value)
        masked = self.text(str(value))
        return masked if re.fullmatch(r"\[\w+\]", masked) else value

    def text(self, text: str, regions: Iterable[str | None] = _REGIONS) -> str:
        """Mask a text; telephone numbers without a country are those of the regions."""
        for kind, rule in _RULES:
            text = rule.sub(partial(self._replaced, kind), text)
        text = _NUMBER.sub(lambda match: self._dialled(match[0], regions), text)
        text = _INTRODUCED.sub(partial(self._replaced, "name"), text)
        text = re.sub(r"[^\W\d_]+", self._named, text)
        whole = re.sub(r"\[name\](?:[\s'’.-]*\[name\])+", "[name]", text)
        self.counts["name"] -= text.count("[name]") - whole.count("[name]")
        return whole

    def _replaced(self, kind: str, match: re.Match[str]) -> str:
        """Return a match with a placeholder in it; as it is if its check digits are wrong."""
        from stdnum import iban, luhn

        checks: dict[str, Callable[[str], bool]] = {"account": iban.is_valid, "card": luhn.is_valid}
        start, end = match.span(match.lastindex or 0)
        if not match.lastindex and kind in checks:
            start, end = _checked(match, checks[kind])
        if start == end:
            return match[0]
        self.counts[kind] += 1
        return f"{match.string[match.start() : start]}[{kind}]{match.string[end : match.end()]}"

    def _dialled(self, text: str, regions: Iterable[str | None]) -> str:
        numbers = {n.raw_string for region in regions for n in PhoneNumberMatcher(text, region)}
        for number in sorted(numbers, key=len, reverse=True):
            if not _DATE.search(number):
                self.counts["phone"] += text.count(number)
                text = text.replace(number, "[phone]")
        return text

    def _named(self, match: re.Match[str]) -> str:
        word = match[0].casefold()
        is_name = match[0][0].isupper() or (len(word) > 2 and not getAllLemmas(word))
        if word not in self.words or not is_name:
            return match[0]
        self.counts["name"] += 1
        return "[name]"


def _checked(match: re.Match[str], is_valid: Callable[[str], bool]) -> tuple[int, int]:
    """Return where in a match the groups are whose check digits are right; an empty span if none.

    A match may have taken what stands before or follows.
    """
    groups = [group.span() for group in re.finditer(r"\w+", match[0])]
    spans = [(start, end) for start, _ in groups for _, end in reversed(groups)]
    for start, end in spans:
        compact = re.sub(r"\W", "", match[0][start:end])
        if len(compact) > 12 and is_valid(compact):
            return match.start() + start, match.start() + end
    return 0, 0


def _words(names: Iterable[str]) -> set[str]:
    """Return the words of names, without mail addresses, digests, and words that are no names."""
    plain = " ".join(re.sub(r"[^\s@]{1,64}@\S+|\b[\da-f-]{12,}\b", "", name) for name in names)
    return {word.casefold() for word in re.findall(r"[^\W\d_]{2,}", plain)} - _NO_NAME
