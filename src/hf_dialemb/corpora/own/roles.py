"""Who is who: from the speakers' names in your own files to the roles of the package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...models.dialogue import ROLES
from ...models.errors import InputError, unknown_name

# Digits as in the raw files of dial2vec.
_USERS = (
    "user", "usr", "u", "customer", "client", "caller", "visitor", "patient", "guest", "driver", "human", "buyer",
    "student", "tourist", "1",
)  # fmt: skip
_ASSISTANTS = (
    "assistant", "agent", "system", "sys", "bot", "chatbot", "ai", "operator", "advisor", "adviser", "representative",
    "clerk", "wizard", "staff", "support", "seller", "teacher", "guide", "doctor", "0",
)  # fmt: skip

WELL_KNOWN = {role: role for role in ROLES} | dict.fromkeys(_USERS, "user") | dict.fromkeys(_ASSISTANTS, "assistant")
"""Names that say by themselves which role a speaker has, in lower case."""


class TooManySpeakersError(InputError):
    """A dialogue has more speakers than there are roles.

    Args:
        name: The speaker for whom no role is left.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"field role: got {name!r} as speaker {len(ROLES) + 1} of the dialogue, expected at most {len(ROLES)}; "
            "split the dialogue, or give several names the same role, as in roles 'Ann=user,Bob=user'"
        )


@dataclass(frozen=True)
class RoleMap:
    """Which roles the speakers have.

    Attributes:
        given: From a speaker's name, in lower case, to a role.
        met: Those of the given names that speakers had so far.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    met: set[str] = field(default_factory=set, compare=False)

    @classmethod
    def parse(cls, text: str | None) -> RoleMap:
        """Reads what a user wrote."""
        given: dict[str, str] = {}
        for pair in text.split(",") if text else ():
            name, equals, role = (part.strip() for part in pair.rpartition("="))
            if not equals or not name:
                raise InputError(
                    f"roles: got {pair.strip()!r}, expected NAME=ROLE, as in 'Agent=assistant,Customer=user'"
                )
            if role.lower() not in ROLES:
                raise unknown_name("role", role, ROLES)
            if _key(name) in given:
                raise InputError(f"roles: got the name {name!r} twice, expected it once; leave one of the two out")
            given[_key(name)] = role.lower()
        return cls(given)

    def assign(self, names: Iterable[str]) -> dict[str, str]:
        """Finds the roles of the speakers of one dialogue.

        A name has the role that was given for it. Otherwise, a well-known name such as ``Customer`` or ``Bot`` takes
        its role, if no other speaker has it. Any other speaker takes the first role that is left, in the order of their
        first turns. Names that differ in case only are one speaker.
        """
        speakers: dict[str, list[str]] = {}
        for name in dict.fromkeys(names):
            speakers.setdefault(_key(name), []).append(name)
        roles = {key: self.given[key] for key in speakers if key in self.given}
        self.met.update(roles)
        for key in speakers:
            role = WELL_KNOWN.get(key)
            if role and key not in roles and role not in roles.values():
                roles[key] = role
        left = [role for role in ROLES if role not in roles.values()]
        for key, spellings in speakers.items():
            if key not in roles:
                if not left:
                    raise TooManySpeakersError(spellings[0])
                roles[key] = left.pop(0)
        return {name: roles[key] for key, spellings in speakers.items() for name in spellings}

    def rename(self, record: Any) -> Any:  # noqa: ANN401 - whatever a file holds
        """Puts the given roles into a dialogue of chat messages; other names stay as they are."""
        if not self.given or not isinstance(record, Mapping) or not isinstance(record.get("messages"), list):
            return record
        return {**record, "messages": [self._rename(message) for message in record["messages"]]}

    def _rename(self, message: Any) -> Any:  # noqa: ANN401
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            return message
        key = _key(message["role"])
        self.met.update({key} & self.given.keys())
        return {**message, "role": self.given.get(key, message["role"])}


def _key(name: str) -> str:
    return name.strip().casefold()
