"""Facts about speakers and roles: what is told comes first, then well-known names, then who speaks first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_dialemb.corpora.own.roles import WELL_KNOWN, RoleMap
from hf_dialemb.models.dialogue import ROLES
from hf_dialemb.models.errors import InputError


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Alice", "Bob"], "user assistant"),
        (["Alice", "Bob", "Cem", "Dora", "Eve"], " ".join(ROLES)),
        (["Agent", "Customer"], "assistant user"),
        (["Alice", "Agent"], "user assistant"),
        ([" SYSTEM ", "usr"], "assistant user"),
        (["0", "1"], "assistant user"),
        (["Bot", "Agent"], "assistant user"),
        (["Agent", "Bot", "Customer"], "assistant speaker_3 user"),
        (["Customer", "Client", "Agent"], "user speaker_3 assistant"),
        (["agent", "AGENT", "Ann"], "assistant assistant user"),
        (["speaker_4", "Alice", "user"], "speaker_4 assistant user"),
        ([], ""),
    ],
)
def test_roles_without_being_told(names, expected):
    assert " ".join(RoleMap().assign(names).values()) == expected


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("Agent=user", ["agent", "Customer"], "user assistant"),
        ("Ann=assistant , Bob = ASSISTANT", ["Cem", "Ann", "Bob"], "user assistant assistant"),
        ("Ann = of = York=speaker_5", ["Ann = of = York", "x"], "speaker_5 user"),
        ("Nobody=user", ["Alice", "Bob"], "user assistant"),
    ],
)
def test_roles_that_were_told_come_first(text, names, expected):
    assigned = RoleMap.parse(text).assign(names)
    assert " ".join(assigned[name] for name in names) == expected


@given(st.lists(st.sampled_from([*WELL_KNOWN, *"ABCDEF"]), max_size=5, unique=True))
def test_up_to_five_speakers_stay_apart(names):
    assigned = RoleMap().assign(names)
    assert list(assigned) == names
    assert len(set(assigned.values())) == len(names)
    assert set(assigned.values()) <= set(ROLES)


def test_a_sixth_speaker_is_named():
    with pytest.raises(InputError, match="got 'Faye' as speaker 6 of the dialogue, expected at most 5"):
        RoleMap().assign(["Ann", "Bob", "Ann", "Cem", "Dan", "Eve", "Faye", "Gus"])
    RoleMap.parse("Faye=user").assign(["Ann", "Bob", "Cem", "Dan", "Faye"])
