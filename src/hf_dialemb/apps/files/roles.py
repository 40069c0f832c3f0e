"""Roles: from the speakers' names in your own files to the roles of the package.

A name has the role that you give it (``--roles``). Otherwise, in each dialogue:

- A machine's notes beside two speakers are left out (``System: Chat started``).
- Well-known names take their role (``Visitor``, ``Agent``, ``Bot``).
- Where one of user and assistant is known then, the others are the other one, such as agents with
  their own names.
- Where neither is, or a machine alone assists, those who speak in many dialogues of the file are
  the assistants, and those who speak in one are the users.
- All others take the roles in order of their first turns; those beyond the fifth share the last
  role.

Guesses are reported with the words that confirm them. A role that a conversation alone decides is
reported as such.
"""

import tomllib
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import zip_longest
from pathlib import Path

from ...dialogue import ROLES, UNSPOKEN
from ...errors import unknown_name
from .columns import pairs_of

_WORDS = tomllib.loads(Path(__file__).with_name("roles.toml").read_text(encoding="utf-8"))
WELL_KNOWN = {
    **{role: role for role in ROLES},
    **dict.fromkeys(_WORDS["users"], "user"),
    **dict.fromkeys([*_WORDS["assistants"], *_WORDS["machines"]], "assistant"),
}
"""From names that give the role of a speaker away, in lower case, to the role."""

PROGRAMS = frozenset((*UNSPOKEN, *_WORDS["programs"]))
"""Parts of programs in a chat, without marks and in lower case; they say nothing."""

IGNORE = "ignore"  # in place of a role: the speaker's turns are left out
REST = "*"  # in place of a name: all other speakers
_LISTED = 6  # names in a sentence at most
_OFTEN = 3  # dialogues of an assistant at least, also as a multiple of a user's


class RoleMap:
    """The roles of the speakers of one source: those that the user gives, and guesses."""

    def __init__(self, text: str | None = None) -> None:
        self.given: dict[str, str] = {}  # from a name in lower case, or `REST`, to a role
        self.met: set[str] = set()  # given names that speakers had
        # From a name that was neither given nor well known to the frequencies of its roles.
        self.guessed: dict[str, Counter[str]] = {}
        self.in_order: set[str] = set()  # of these, those whose role the order of turns decided
        # speakers of the latest dialogue that share the last role, as too many speak
        self.sharing: list[str] = []
        self.forget()
        expected = (
            "NAME=ROLE, each once, as in 'Agent=assistant,Customer=user'; a role may be "
            f"{IGNORE}, and {REST} stands for all other names"
        )
        pairs = pairs_of("roles", text, expected, at_last=True) if text else []
        for given, role in pairs:
            # an agent is an assistant
            self.given[_key(given)] = known = WELL_KNOWN.get(role.lower(), role.lower())
            if known not in (*ROLES, IGNORE):
                raise unknown_name("role", known, (*ROLES, IGNORE))

    def forget(self) -> None:
        """Begin another file, whose speakers are guessed by themselves."""
        self.spoken: Counter[str] = Counter()  # dialogues by name, as counted
        self.notes: set[str] = set()  # machines that somewhere speak beside two others

    def count(self, names: Iterable[str]) -> None:
        """Count the speakers of one dialogue of the file, before any is assigned."""
        keys = {_key(name) for name in names}
        self.spoken.update(keys)
        self.notes.update(_notes_among(keys))

    def assign(self, names: Iterable[str]) -> dict[str, str]:
        """Return the roles of the speakers of one dialogue; those left out have `IGNORE`.

        Names that differ in case only are one speaker.
        """
        spellings = list(dict.fromkeys(names))
        speakers = {_key(name): name.strip() for name in reversed(spellings)}
        keys = list(dict.fromkeys(map(_key, spellings)))
        roles = {key: self.given.get(key, self.given.get(REST, "")) for key in keys}
        self.met.update(key if key in self.given else REST for key in keys if roles[key])
        self.notes.update(_notes_among(keys))
        unknown = [key for key in keys if not roles[key]]
        roles |= self._guesses(unknown, {*roles.values()} - {IGNORE, ""})
        left = [role for role in ROLES if role not in roles.values()]
        in_order = [key for key in unknown if not roles[key]]
        self.sharing = in_order[len(left) :]
        self.in_order.update(speakers[key] for key in in_order)
        roles |= dict(zip_longest(in_order, left[: len(in_order)], fillvalue=ROLES[-1]))
        for key in unknown:
            if roles[key] != WELL_KNOWN.get(key):
                self.guessed.setdefault(speakers[key], Counter())[roles[key]] += 1
        return {name: roles[_key(name)] for name in spellings}

    def _guesses(self, names: list[str], taken: set[str]) -> dict[str, str]:
        """Guess roles; those that the order of turns decides are empty."""
        guesses: dict[str, str] = {}
        people = set(taken)  # roles of others than machines
        for name in names:
            role = WELL_KNOWN.get(name, "")
            # a bot hands over to an agent: both assist
            is_machine = name in _WORDS["machines"]
            if name in self.notes:
                guesses[name] = IGNORE
            elif role and (is_machine or role not in {*taken, *guesses.values()}):
                guesses[name] = role
                if not is_machine:
                    people.add(role)
        rest = [name for name in names if name not in guesses]
        known = {*taken, *guesses.values()} & set(ROLES[:2])
        others = "user" if known else ""
        often: list[str] = []
        if "user" in known:
            others = "" if "assistant" in people else "assistant"
        elif "assistant" not in people:
            seldom = max(1, min((self.spoken[name] for name in rest), default=1))
            often = [name for name in rest if self.spoken[name] >= _OFTEN * seldom]
            others = "user" if often else others
        return guesses | dict.fromkeys(rest, others) | dict.fromkeys(often, "assistant")

    def guess(self) -> str:
        """Return a sentence with the guesses and the words that confirm them, if there are some."""
        several = {name for name, counts in self.guessed.items() if len(counts) > 1}
        is_apart = bool(self.in_order & several) or len(self.in_order) > _LISTED
        apart = sorted(self.in_order) if is_apart else []
        by_role: dict[str, list[str]] = {}
        for name, counts in self.guessed.items():
            if name not in apart:
                by_role.setdefault(counts.most_common(1)[0][0], []).append(name)
        roles = "; ".join(f"{_listed(names)}: {role}" for role, names in by_role.items())
        parts = [f"guessed {roles}"] if roles else []
        words = [f"{name}={role}" for role, names in by_role.items() for name in names]
        words += [f"{key}={self.given[key]}" for key in self.given if key in {*self.met, REST}]
        remedy = f"to confirm or change it, say --roles '{','.join(words)}'"
        if apart:
            parts.append(
                f"given conversation by conversation to {_listed(apart)}: the first to "
                "speak is the user, the next the assistant"
            )
        if apart or several or len(words) > _LISTED:
            remedy = "if that is wrong, say who is who, as in --roles 'Ann=assistant,*=user'"
        return f"roles: {'; '.join(parts)}; {remedy}" if parts else ""


def _notes_among(keys: Collection[str]) -> set[str]:
    notes = {key for key in keys if key in _WORDS["notes"]}
    return notes if len(keys) - len(notes) > 1 else set()


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _OFTEN:,} more" if len(names) > _OFTEN else ""
    return ", ".join(names[:_OFTEN]) + more


def _key(name: str) -> str:
    return name.strip().casefold()
