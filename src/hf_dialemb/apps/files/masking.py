"""Masking: placeholders for what may say who a person is. No guarantee.

What no rule and no list knows stays.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ...dialogue import Dialogue
from ...errors import InputError
from .roles import WELL_KNOWN

# whose national numbers are known
_REGIONS = (None, "US", "GB", "DE", "FR", "ES", "IT", "PT", "NL", "BR", "IN", "AU")
_IS = (
    r"\w*[^\w+(]{0,3}(?:(?:number|nummer|n[or]|n[uú]m[eé]ro|is|ist|es|est|at|on)[^\w+(]{1,3}){0,3}"
)
_BANK = r"account|acct|konto|compte|cuenta|cont[oa](?!\w)|rekening|sort code|blz"
_TELEPHONE = (
    "contact|phone|tel|mobile?|cell|whatsapp|fax|call me|handy|t[eé]l[eé]f|m[oó]vil|celular"
)
_RULES = (  # what is replaced is the group, or all
    ("email", r"[\w.+%'-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"),
    ("email", r"\b[\w.-]{1,64} \W?at\W? [\w-]{1,63} \W?dot\W? \w{2,3}\b"),
    (
        "link",
        r"(?:\b(?:https?|ftp)://|\bwww\.|\b[\w-]{1,63}\.(?:com|org|net|io|de|fr|es|it|nl|uk)/)\S*[\w/]",
    ),
    ("link", r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)"),
    ("link", r"(?<![\w.:])(?=\S*::|(?:\w+:){4})(?:[\da-f]{1,4}:+){2,7}[\da-f]{1,4}(?![\w:])"),
    ("account", r"\b[A-Z]{2}\d\d(?: ?[A-Z\d]{4}){2,7}(?: ?[A-Z\d]{1,4})?\b"),
    ("card", r"(?<!\d)[2-6](?:[ -]?\d){12,18}(?!\d)"),
    ("account", rf"\b(?:{_BANK}){_IS}(\d(?:[ -]?\d){{5,19}})"),
    ("phone", rf"\b(?:{_TELEPHONE}){_IS}(\+?\(?\d(?:[ ()/.-]{{0,2}}\d){{5,14}})"),
)
_MANY_DIGITS = re.compile(r"(?:\d[^\w\n]{0,3}){7}")
_DATE = re.compile(
    r"(?<!\d)(?:\d{1,2}([./-])\d{1,2}\1(?:19|20)\d\d|(?:19|20)\d\d([./-])\d\d\2\d\d)(?!\d)"
)
_NAME = r"[^\W\d_a-zß-ÿ][\w'’-]+"
_INTRODUCED = re.compile(
    r"(?i:\b(?:my name(?:'s| is)|ich heiße|mein name ist|je m'appelle|mon nom est|me llamo|mi "
    r"nombre es|mi chiamo|"
    r"me chamo|meu nome é|mijn naam is|ik heet)) "
    rf"({_NAME}(?: {_NAME}){{0,2}}|(?!not |on )\w+(?= ?(?:[.,!?;]|$)| (?:and|und|y|et|e|en)\b))"
    rf"|(?i:\bthis is) ({_NAME}(?: {_NAME}){{0,2}}) (?:speaking|here|calling|from)\b"
    r"|\b(?:Mr|Mrs|Ms|Dr|Prof|Herrn?|Frau|Monsieur|Mme|Sra?|Señora?|Signora?|Senhora?|Mevrouw)\b"
    rf"\.? ({_NAME})"
)
_PERSON = re.compile(  # metadata whose values are names
    r"(?:.*[\W_])?(?:agent|author|assignee|caller|client|customer|requester)(?:.?name)?|"
    r"(?:(?:first|last|full|user).?)?name",
    re.I,
)
_NO_NAME = set(
    re.findall(
        r"\w+", "system speaker first second unknown none null the and desk van von der den del"
    )
)
_NO_NAME |= {*WELL_KNOWN, "email", "phone", "card", "account", "link", "name"}


def mask(
    dialogues: Iterable[Dialogue], names: Iterable[str] = (), counts: Counter[str] | None = None
) -> Iterator[Dialogue]:
    """Put placeholders for what may tell who it is.

    They are ``[email]``, ``[phone]``, ``[card]``, ``[account]``, ``[link]`` and ``[name]``. Texts,
    speakers' names, values of slots, metadata and ids are masked. Names are those that are given,
    those of the dialogue's speakers, and those after words such as "my name is" or "Mrs."; a
    lower-case word of English is no name. This is no guarantee: names that nobody lists, addresses,
    and what is spelled out stay. Read the result. The placeholders are added to ``counts``, by
    kind. An InputError names a package for numbers that is missing.
    """
    counts, ids, given = Counter() if counts is None else counts, Counter[str](), _words(names)
    for dialogue in dialogues:
        fields = {key for key in dialogue.metadata if _PERSON.fullmatch(key)}
        persons = [str(dialogue.metadata[key]) for key in fields] + [
            turn.name for turn in dialogue.turns
        ]
        for turn in dialogue.turns:
            persons += [match[match.lastindex or 0] for match in _INTRODUCED.finditer(turn.content)]
        words = given | _words(persons)

        def masked(value: Any, person: bool = False, words: set[str] = words) -> Any:
            if isinstance(value, list):
                return [masked(part) for part in value]
            named = person and bool(_words([str(value)]))  # "bob" is "Bob", where it must be a name
            return (
                _masked(value.title() if named else value, words, counts)
                if isinstance(value, str)
                else value
            )

        turns = [
            replace(
                turn,
                content=masked(turn.content),
                name=masked(turn.name, person=True),
                slots=tuple((slot, masked(value)) for slot, value in turn.slots),
            )
            for turn in dialogue.turns
        ]
        metadata = {key: masked(value, key in fields) for key, value in dialogue.metadata.items()}
        id = _masked(dialogue.id, words, counts, regions=(None,))
        if id != dialogue.id:
            ids[id] += 1
            id += f"-{ids[id]}"  # ids stay different
        yield replace(dialogue, turns=tuple(turns), id=id, metadata=metadata)


def _masked(
    text: str, words: set[str], counts: Counter[str], regions: Iterable[str | None] = _REGIONS
) -> str:
    try:
        from phonenumbers import PhoneNumberMatcher
        from stdnum import iban, luhn
    except ImportError as error:
        raise InputError(
            f'masking: the package {error.name} is missing; pip install "hf-dialemb[apps]"'
        ) from None

    def is_valid(kind: str, secret: str) -> bool:
        digits = re.sub("[ -]", "", secret)
        return (
            luhn.is_valid(digits) and len(digits) > 12
            if kind == "card"
            else digits.isdecimal() or iban.is_valid(secret)
        )

    for kind, rule in _RULES:
        for match in reversed(list(re.finditer(rule, text, re.IGNORECASE))):
            start, secret = match.start(match.lastindex or 0), match[match.lastindex or 0]
            while secret and kind in ("account", "card") and not is_valid(kind, secret):
                secret = secret.rpartition(" ")[0]  # it may have taken what follows
            text = _replaced(text, kind, start, start + len(secret), counts) if secret else text
    for region in regions if _MANY_DIGITS.search(text) else ():
        for number in reversed(list(PhoneNumberMatcher(text, region))):
            if not _DATE.search(number.raw_string):
                text = _replaced(text, "phone", number.start, number.end, counts)
    return _nameless(text, words, counts)


def _nameless(text: str, words: set[str], counts: Counter[str]) -> str:
    from lemminflect import getAllLemmas

    for match in reversed(list(_INTRODUCED.finditer(text))):
        text = _replaced(text, "name", *match.span(match.lastindex or 0), counts)
    for match in reversed(list(re.finditer(r"[^\W\d_]+", text))):
        word = match[0].casefold()
        if word in words and (match[0][0].isupper() or (len(word) > 2 and not getAllLemmas(word))):
            text = _replaced(text, "name", *match.span(), counts)
    whole = re.sub(r"\[name\](?:[\s'’.-]*\[name\])+", "[name]", text)
    counts["name"] -= text.count("[name]") - whole.count("[name]")
    return whole


def _replaced(text: str, kind: str, start: int, end: int, counts: Counter[str]) -> str:
    counts[kind] += 1
    return f"{text[:start]}[{kind}]{text[end:]}"


def _words(names: Iterable[str]) -> set[str]:
    """Return the words of names, without mail addresses, digests, and words that are no names."""
    plain = " ".join(re.sub(r"\S+@\S+|\b[\da-f-]{12,}\b", "", name) for name in names)
    return {word.casefold() for word in re.findall(r"[^\W\d_]{2,}", plain)} - _NO_NAME
