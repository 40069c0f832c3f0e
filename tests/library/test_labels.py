"""Facts about labels in the unified form.

The 44 names of acts, cleaning, turns, and the names of actions.
"""

import hashlib
import json
import re

from hypothesis import given
from hypothesis import strategies as st

from hf_dialemb import Dialogue, Turn, load_dialogues
from hf_dialemb.data.labels import (
    ACTS,
    INTENT_ACTS,
    MORE_ACTS,
    PARENTS,
    UnifiedTurn,
    action_name,
    clean_label,
    parse_action,
    unified_dialogue,
    unified_turn,
)

# the digest of the paper's map
TABLE_A3 = "45a74695fc40dc3f1a65cb221c2ada4c9d87a8cfded1274edef4f03b1a31ab2c"
NORMALISED = sorted(set(ACTS.values()))


def acts_of(*names):
    return unified_turn(Turn("user", "Well", names)).acts


def test_the_map_is_the_papers_and_more_acts_continue_it():
    assert (len(ACTS), len(NORMALISED)) == (44, 18)
    assert hashlib.sha256(json.dumps(sorted(ACTS.items())).encode()).hexdigest() == TABLE_A3
    assert not set(MORE_ACTS) & set(ACTS)
    assert set(MORE_ACTS.values()) <= set(NORMALISED)
    assert all(clean_label(name) == name for name in MORE_ACTS)
    families = ("inform", "request", "confirm")
    assert {act: act.split()[0] for act in NORMALISED if act.split()[0] in families} == PARENTS
    for original, act in ACTS.items():
        assert acts_of(original, original.upper().replace(" ", "_"), act) == (act,)
        assert clean_label(original) == original


def test_other_acts_and_labels_are_cleaned():
    for act, expected in (
        *(
            ("INFORM_COUNT", "inform"),
            ("REQUEST_ALTS", "request alternative"),
            ("general-bye", "general bye"),
        ),
        *(
            ("bye", "good bye"),
            ("greet", "greeting"),
            ("thank", "thank you"),
            ("reqmore", "request more"),
        ),
        *(
            ("ask_name", "ask name"),
            ("OTHER", ""),
            ("switch_frame", ""),
            ("not_sure", ""),
            ("", ""),
        ),
        *((act, "") for act in INTENT_ACTS),
    ):
        assert acts_of(act) == ((expected,) if expected else ())
    for label, cleaned in (
        *(
            ("Restaurants_2", "restaurant"),
            ("RentalCars_1", "rentalcars"),
            ("Media_3", "medium"),
            ("bus", "bus"),
        ),
        *(
            ("arriveBy", "arriveby"),
            ("price_range", "price range"),
            ("number_of_adults", "number of adult"),
        ),
        *(("has_wifi", "ha wifi"), ("serves_alcohol", "serf alcohol"), ("show_times", "show time")),
        *(
            ("address", "address"),
            ("n_adults", "adult"),
            ("otherwise", "otherwise"),
            ("Not sure", ""),
        ),
        *(("other", ""), ("a-b-c", ""), ("12:30", ""), ("  ", "")),
    ):
        assert clean_label(label) == cleaned


def test_a_turn_keeps_order_and_drops_what_is_double_or_says_nothing():
    slots = (("Streets", ""), ("rooms", "two"), ("room", "two"), ("room", "2"), ("7", "x"))
    acts, intents = (
        ("REQUEST", "NOTIFY_SUCCESS", "OTHER", "book", "inform"),
        ("BookHotel_1", "bookhotel"),
    )
    unified = unified_turn(
        Turn("assistant", ' "Two rooms, and which street?" ', acts, slots, intents)
    )
    assert unified == UnifiedTurn(
        *(
            "assistant",
            "Two rooms, and which street?",
            ("request", "inform success", "inform"),
            ("request", "inform"),
        ),
        original_acts=("request", "notify success", "book", "inform"),
        slots=("street", "room"),
        values=(("street", ""), ("room", "two"), ("room", "2")),
        intents=("bookhotel",),
        action="inform, inform success, request room, street",
    )


def test_an_intent_is_announced_alone_and_services_are_one_domain():
    slots = (("intent", "FindEvents"), ("city", "Oslo"))
    unified = unified_turn(
        Turn("user", "Events in Oslo", ("inform_intent", "inform"), slots, ("FindEvents",))
    )
    assert (unified.acts, unified.original_acts) == (("inform",), ("inform",))
    assert (unified.slots, unified.intents) == (("city",), ("findevents",))
    assert unified.action == "inform city"
    assert unified_turn(Turn("user", "Well")) == UnifiedTurn("user", "Well")
    turns = (Turn("user", "Hi", ("INFORM",)),)
    unified = unified_dialogue(
        Dialogue(turns, domains=("Hotels_1", "hotels_2", "Restaurants_1", "other"), id="7")
    )
    assert unified == Dialogue(
        (Turn("user", "Hi", ("inform",)),), domains=("hotel", "restaurant"), id="7"
    )


# The paper's form has no sign between acts and slots: the second word of an act cannot begin the
# first slot.
AMBIGUOUS = {act.split()[1] for act in NORMALISED if " " in act}
SLOTS = st.from_regex("[a-z]{2,8}( [a-z]{2,8})?", fullmatch=True).filter(
    lambda name: name.split()[0] not in AMBIGUOUS
)


@given(st.sets(st.sampled_from(NORMALISED), min_size=1), st.sets(SLOTS, max_size=4), st.randoms())
def test_the_name_of_an_action_is_one_and_can_be_taken_apart(acts, slots, random):
    first, second = list(acts), list(slots)
    random.shuffle(first)
    random.shuffle(second)
    label = action_name(first, second)
    assert label == action_name(acts, slots)
    assert parse_action(label) == (tuple(sorted(acts)), tuple(sorted(slots)))


def test_the_published_labels_are_clean_and_their_actions_parse(data_dir):
    turns = (item.turns[0] for item in load_dialogues("dialog2flow_evaluation", data_dir, "test"))
    labels = {turn.intents[0] for turn in turns}
    assert len(labels) == 313
    for label in labels:
        acts, slots = parse_action(label)
        assert acts
        assert set(acts) <= set(NORMALISED)
        assert [clean_label(name) for name in (*acts, *slots)] == [*acts, *slots]
        made = action_name(acts, slots)
        assert sorted(re.findall(r"\w+", made)) == sorted(re.findall(r"\w+", label))
        assert parse_action(made) == (tuple(sorted(acts)), tuple(sorted(slots)))
