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

from collections import Counter
from collections.abc import Collection, Iterable

from ...dialogue import ROLES
from ...errors import InputError, unknown_name

# Digits as in the raw files of dial2vec.
_USERS = (
    "user",
    "usr",
    "u",
    "customer",
    "client",
    "caller",
    "visitor",
    "patient",
    "guest",
    "driver",
    "human",
    "buyer",
    "student",
    "tourist",
    "end-user",
    "end_user",
    "enduser",
    "requester",
    "contact",
    "lead",
    "consumer",
    "shopper",
    "passenger",
    "1",
    "kunde",
    "kundin",
    "cliente",
    "usuario",
    "usuário",
    "utilisateur",
    "klant",
    "gebruiker",
    "клиент",
    "пользователь",
    "顾客",
    "客户",
    "用户",
    "お客様",
    "고객",
    "العميل",
)
_ASSISTANTS = (
    "assistant",
    "agent",
    "operator",
    "advisor",
    "adviser",
    "representative",
    "rep",
    "clerk",
    "wizard",
    "staff",
    "support",
    "seller",
    "teacher",
    "guide",
    "doctor",
    "admin",
    "teammate",
    "employee",
    "0",
    "agente",
    "berater",
    "mitarbeiter",
    "kundenservice",
    "conseiller",
    "soporte",
    "atendente",
    "medewerker",
    "оператор",
    "агент",
    "поддержка",
    "客服",
    "坐席",
    "オペレーター",
    "担当者",
    "상담원",
    "الموظف",
)
_MACHINES = (
    "system",
    "sys",
    "bot",
    "chatbot",
    "ai",
    "gpt",
    "chatgpt",
    "model",
    "virtual assistant",
    "virtual agent",
)
_NOTES = (
    "system",
    "sys",
    "automated",
    "automation",
    "notification",
    "event",
    "info",
    "system message",
)

WELL_KNOWN = {role: role for role in ROLES} | dict.fromkeys(_USERS, "user")
WELL_KNOWN |= dict.fromkeys((*_ASSISTANTS, *_MACHINES), "assistant")
"""From names that give the role of a speaker away, in lower case, to the role."""

IGNORE = "ignore"  # in place of a role: the speaker's turns are left out
REST = "*"  # in place of a name: all other speakers
_LISTED = 6  # names in a sentence at most
_OFTEN = 3  # dialogues of an assistant at least, also as a multiple of a user's


class RoleMap:
    """The roles of the speakers of one source: those that the user gives, and guesses."""

    def __init__(self, text: str | None = None) -> None:
        self.given: dict[str, str] = {}  # from a name in lower case, or `REST`, to a role
        self.met: set[str] = set()  # given names that speakers had
        self.spoken: Counter[str] = Counter()  # dialogues by name, as counted
        self.notes: set[str] = set()  # machines that somewhere speak beside two others
        # From a name that was neither given nor well known to the frequencies of its roles.
        self.guessed: dict[str, Counter[str]] = {}
        self.in_order: set[str] = set()  # of these, those whose role the order of turns decided
        # speakers of the latest dialogue that share the last role, as too many speak
        self.sharing: list[str] = []
        self.sure: dict[str, str] = {}  # roles of well-known names that were not given
        for pair in text.split(",") if text else ():
            name, equals, role = (part.strip() for part in pair.rpartition("="))
            if not equals or not name:
                raise InputError(
                    f"roles: got {pair.strip()!r}, expected NAME=ROLE, as in "
                    "'Agent=assistant,Customer=user'; a role "
                    f"may be {IGNORE}, and {REST} stands for all other names"
                )
            role = WELL_KNOWN.get(role.lower(), role.lower())  # an agent is an assistant
            if role not in (*ROLES, IGNORE):
                raise unknown_name("role", role, (*ROLES, IGNORE))
            if _key(name) in self.given:
                raise InputError(
                    f"roles: got the name {name!r} twice, expected it once; leave one of the two "
                    "out"
                )
            self.given[_key(name)] = role

    def forget(self) -> None:
        """Begin another file, whose speakers are guessed by themselves."""
        self.spoken, self.notes = Counter(), set()

    def count(self, names: Iterable[str]) -> None:
        """Count the speakers of one dialogue of the file, before any is assigned."""
        keys = {_key(name) for name in names}
        self.spoken.update(keys)
        self.notes.update(_notes_among(keys))

    def assign(self, names: Iterable[str]) -> dict[str, str]:
        """Return the roles of the speakers of one dialogue; those left out have `IGNORE`.

        Names that differ in case only are one speaker.
        """
        speakers: dict[str, list[str]] = {}
        for name in dict.fromkeys(names):
            speakers.setdefault(_key(name), []).append(name)
        roles = {key: self.given.get(key, self.given.get(REST, "")) for key in speakers}
        self.met.update(key if key in self.given else REST for key in speakers if roles[key])
        unknown = [key for key in speakers if not roles[key]]
        self.notes.update(_notes_among(speakers))
        guesses = self._guesses(unknown, {role for role in roles.values() if role != IGNORE})
        left = [role for role in ROLES if role not in {*roles.values(), *guesses.values()}]
        self.sharing = [key for key in unknown if key not in guesses][len(left) :]
        for key in unknown:
            name = speakers[key][0].strip()
            if key not in guesses:
                guesses[key] = left.pop(0) if left else ROLES[-1]
                self.in_order.add(name)
            if guesses[key] == WELL_KNOWN.get(key):
                self.sure[name] = guesses[key]
            else:
                self.guessed.setdefault(name, Counter())[guesses[key]] += 1
        roles |= guesses
        return {name: roles[key] for key, spellings in speakers.items() for name in spellings}

    def _guesses(self, names: list[str], taken: set[str]) -> dict[str, str]:
        """Guess the roles that neither the user nor the order of turns decides."""
        guesses = {name: IGNORE for name in names if name in self.notes}
        for name in names:
            role = WELL_KNOWN.get(name, "")
            # a bot hands over to an agent: both assist
            shared = name in _MACHINES and role == "assistant"
            if role and name not in guesses and (shared or role not in {*taken, *guesses.values()}):
                guesses[name] = role
        people = {role for name, role in guesses.items() if name not in _MACHINES} | taken
        rest, known = (
            [name for name in names if name not in guesses],
            {*taken, *guesses.values()} & set(ROLES[:2]),
        )
        if rest and "user" in known and "assistant" not in people:
            guesses |= dict.fromkeys(rest, "assistant")
        elif rest and "user" not in known:
            seldom = min(self.spoken[name] for name in rest)
            often = [name for name in rest if self.spoken[name] >= _OFTEN * max(1, seldom)]
            if often and "assistant" not in people:
                guesses |= {name: "assistant" if name in often else "user" for name in rest}
            elif known:
                guesses |= dict.fromkeys(rest, "user")
        return guesses

    def guess(self) -> str:
        """Return a sentence with the guesses and the words that confirm them.

        Empty without guesses.
        """
        apart = self.in_order & {name for name, counts in self.guessed.items() if len(counts) > 1}
        apart = self.in_order if apart or len(self.in_order) > _LISTED else set()
        roles = {
            name: counts.most_common(1)[0][0]
            for name, counts in self.guessed.items()
            if name not in apart
        }
        by_role = {
            role: [name for name in roles if roles[name] == role]
            for role in dict.fromkeys(roles.values())
        }
        sentences = [f"guessed {_listed(names)}: {role}" for role, names in by_role.items()]
        if apart:
            who = _listed(sorted(apart))
            sentences.append(
                f"given conversation by conversation to {who}: the first to speak is "
                "the user, the next "
                "the assistant"
            )
        if not sentences:
            return ""
        sentence = "roles: " + "; ".join(sentences).replace("; guessed ", "; ")
        if apart:
            return (
                f"{sentence}; if that is wrong, say who is who, as in --roles "
                "'Ann=assistant,*=user'"
            )
        most = max(by_role, key=lambda role: len(by_role[role]))
        words = [
            f"{name}={role}"
            for name, role in roles.items()
            if role != most or len(by_role[most]) <= _OFTEN
        ]
        if len(by_role[most]) > _OFTEN:  # stands for the well-known names too
            words += [
                *(f"{name}={role}" for name, role in self.sure.items() if role != most),
                f"{REST}={most}",
            ]
        if len(words) > _LISTED or any(len(counts) > 1 for counts in self.guessed.values()):
            return (
                f"{sentence}; if that is wrong, say who is who, as in --roles "
                "'Ann=assistant,*=user'"
            )
        given = (f"{name}={role}" for name, role in self.given.items() if name in {*self.met, REST})
        return f"{sentence}; to confirm or change it, say --roles '{','.join([*given, *words])}'"


def _notes_among(keys: Collection[str]) -> set[str]:
    notes = {key for key in keys if key in _NOTES}
    return notes if len(keys) - len(notes) > 1 else set()


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _OFTEN:,} more" if len(names) > _OFTEN else ""
    return ", ".join(names[:_OFTEN]) + more


def _key(name: str) -> str:
    return name.strip().casefold()
