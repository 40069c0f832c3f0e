"""Analyse the paths of dialogues: the main one, and how they end."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, get_args

from ...dialogue import ROLES
from . import outcomes
from .flow import Flow
from .graph import END, Edge, State, steps_of

_SEVERAL = 0.05
# the weight of what others say in the main path; chosen on dev splits, by the dialogue's domains
_OTHERS = 0.3
# where a smaller share of dialogues finish, the main path may be one that does not
_FINISHING = 0.25
# the least share of endings at a state, and its least count, for dialogues to end there
_USUAL = 0.5
_OFTEN = 5

Kind = Literal["failed", "cancelled", "broken off", "finished", "not in English"]
KINDS: tuple[Kind, ...] = get_args(Kind)
UNREAD = KINDS[-1]  # the end of dialogues whose words no rule reads


@dataclass(frozen=True)
class TypicalPath:
    """The main path: that of the dialogue whose states most others come through."""

    dialogue: str  # its id
    states: tuple[State, ...]  # different ones, in order
    texts: tuple[str, ...]  # its words in each
    turns: tuple[int, ...]  # the turns of these texts, counted from 0; others are left out
    steps: frozenset[Edge]  # all of its transitions, from `START` to `END`


@dataclass(frozen=True)
class End:
    """Dialogues that end alike."""

    kind: Kind
    state: State  # that of the last failure or success; without these, the last one
    dialogues: tuple[str, ...]  # their ids
    text: str  # its words in the first of them


def typical_path(flow: Flow) -> TypicalPath:
    """Return the path of the dialogue whose states most others come through, without rare states.

    Two shares make a dialogue typical: that of the dialogues which come through its states, and
    that of the states of all dialogues, counted once a dialogue, which are its own. Their weighted
    harmonic mean decides, and the first weighs more, as few others share the states of a dialogue
    about two things. It has more than half as many states as the median. Dialogues that finish come
    first (see `ends`), unless hardly any do; and those that finish with something done, where most
    do. States of a single dialogue, or of less than `_SEVERAL` of all, are not shown. Thanks and
    goodbyes are shown at the end alone.
    """
    names = flow.utterances.dialogues
    through = Counter(state for trajectory in flow.trajectories for state in set(trajectory))
    least = max(2, _SEVERAL * len(names))
    shown = {state for state, times in through.items() if times >= least} or set(through)
    usual = median(len(set(trajectory)) for trajectory in flow.trajectories)
    preferred = _preferred(flow)

    def typical(row: int) -> tuple[bool, bool, float]:
        states = set(flow.trajectories[row])
        visits = sum(through[state] for state in states)
        shared = visits / (len(states) * len(names))
        covered = visits / through.total()
        mean = (1 + _OTHERS**2) * shared * covered / (_OTHERS**2 * shared + covered)
        fits = 2 * len(states) > usual and not states.isdisjoint(shown)
        return fits, names[row] in preferred, round(mean, 9)

    best = max(range(len(names)), key=typical)
    trajectory = flow.trajectories[best]
    rows = flow.utterances.rows_of(best)
    turns = [turn for turn, state in enumerate(trajectory) if state in shown]
    telling = [
        turn for turn in turns if not outcomes.says_only_over(flow.by_state[trajectory[turn]].name)
    ]
    last = max(telling, default=-1)
    first = {trajectory[turn]: turn for turn in reversed(telling)}
    # the last goodbye of each state
    closing = {trajectory[turn]: turn for turn in turns if turn > last}
    kept = sorted((*first.values(), *closing.values()))
    return TypicalPath(
        names[best],
        tuple(trajectory[turn] for turn in kept),
        tuple(flow.utterances.texts[rows[turn]] for turn in kept),
        tuple(kept),
        frozenset(steps_of(trajectory)),
    )


def _preferred(flow: Flow) -> set[str]:
    """Return the dialogues that the main path is taken from, by name; empty where any will do."""
    count = len(flow.utterances.dialogues)
    finished = [end for end in ends(flow) if end.kind == "finished"]
    done = {name for end in finished if outcomes.says_done(end.text) for name in end.dialogues}
    if 2 * len(done) > count:
        return done
    names = {name for end in finished for name in end.dialogues}
    return names if len(names) >= _FINISHING * count else set()


def ends(flow: Flow) -> list[End]:
    """List how dialogues end, by English words (see `hf_dialemb.apps.flow.outcomes`).

    The most frequent end comes first. See `end_of` for what decides; dialogues usually end at a
    state that is the last one of at least half of the dialogues that come there.
    """
    dialogues: dict[tuple[Kind, State], list[tuple[str, str]]] = defaultdict(list)
    utterances = flow.utterances
    for number, trajectory in enumerate(flow.trajectories):
        texts = [utterances.texts[row] for row in utterances.rows_of(number)]
        last = trajectory[-1]
        share = flow.graph.shares.get((last, END), 0.0)
        usual = flow.graph.states[last] >= _OFTEN and share >= _USUAL
        kind, turn = end_of(
            [role for role, _ in trajectory], texts, usual, flow.settings.get("language", "")
        )
        dialogues[kind, trajectory[turn]].append((utterances.dialogues[number], texts[turn]))
    listed = [
        End(kind, state, tuple(name for name, _ in pairs), pairs[0][1])
        for (kind, state), pairs in dialogues.items()
    ]
    return sorted(listed, key=lambda end: (-len(end.dialogues), end.kind, end.state))


def end_of(
    roles: Sequence[str], texts: Sequence[str], usual: bool = False, language: str = ""
) -> tuple[Kind, int]:
    """Return how a dialogue ends, and the turn that decides it, by who says what in each turn.

    The last outcome that anybody but the user reports decides: it failed, or it is done and the
    dialogue is finished. A failure is passed over where other information comes afterwards. Where
    something is only missing, as parking at a hotel, it is also passed over where something was
    done before. Where nothing decides, a dialogue finishes with thanks and goodbyes or at a turn
    with which dialogues usually end (``usual``); else it broke off. Nothing is finished by what was
    done before an open question, a misunderstanding, or the user's "never mind", with which it is
    cancelled. The end of what is not in English (see `outcomes.is_english`) is not read.
    """
    if not outcomes.is_english(texts, language):
        return UNREAD, len(texts) - 1
    others = [turn for turn, role in enumerate(roles) if role != ROLES[0]]
    latest = max((turn for turn in others if outcomes.says_something(texts[turn])), default=-1)
    done = next((turn for turn in others if outcomes.says_done(texts[turn])), len(texts))

    def decides(turn: int) -> bool:
        if not outcomes.says_failed(texts[turn]):
            return outcomes.says_done(texts[turn])
        if outcomes.says_tried(texts[turn]):
            return turn >= latest
        return latest < turn < done

    # others ask after thanks whether there is anything else
    over = any(map(outcomes.says_over, texts[-2:]))
    asked = texts[-1].rstrip().endswith("?") and (roles[-1] == ROLES[0] or not over)
    withdrawn = outcomes.withdrawal(roles, texts)
    is_open = asked or withdrawn is not None or outcomes.says_unclear(texts[-1])
    deciding = max(filter(decides, others), default=-1)
    if deciding >= 0 and outcomes.says_failed(texts[deciding]):
        return "failed", deciding
    if deciding >= 0 and (not is_open or deciding == len(texts) - 1):
        return "finished", deciding
    if withdrawn is not None:
        return "cancelled", withdrawn
    kind: Kind = "finished" if (usual or over) and not is_open else "broken off"
    return kind, len(texts) - 1
