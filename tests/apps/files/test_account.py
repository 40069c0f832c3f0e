"""Facts about the account: every word of a long text is said, left out for a reason, or lost."""

import json
from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_structures import structure

from hf_dialemb.apps.cli import main
from hf_dialemb.apps.files.account import Account, texts_in
from hf_dialemb.apps.files.findings import Notes
from hf_dialemb.apps.files.reading import find_own
from hf_dialemb.apps.files.record_files import find_in_records

NOTES = ["nobody has ever said these words", "and nobody will ever say these"]


def account_of(value):
    """Return the account of a value of JSON, and the texts of its dialogues."""
    notes = Notes()
    records = value if isinstance(value, list) else [value]
    findings = find_in_records(
        lambda: [(str(n), item) for n, item in enumerate(records)], "x", notes
    )
    dialogues = [finding.dialogue for finding in findings if finding.dialogue]
    return notes.account, [turn.content for item in dialogues for turn in item.turns]


@st.composite
def changed(draw):
    """Draw a structure that is wrapped, renamed, reordered, nested, or has siblings."""
    value, truth, _ = structure(draw(st.integers(1000, 5000)))
    if draw(st.booleans()):
        value = {"export": {"version": 1, "all": value}}
    if draw(st.booleans()):
        value = {"first": value, "remarks": [{"n": n, "t": text} for n, text in enumerate(NOTES)]}
    return value, truth


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(changed())
def test_words_in_are_words_out_and_a_remainder(case):
    value, truth = case
    account, texts = account_of(value)
    if isinstance(value, dict):  # flat rows are a table, which counts cells
        sizes = [len(text.split(" ")) for _, text in texts_in(value, "")]
        assert account.words.total() + account.left.total() == sum(n for n in sizes if n > 2)
        expected = Counter(text for turns in truth.values() for _, text in turns)
        unsaid = expected - Counter(texts)
        assert not unsaid or account.left.total() >= sum(len(text.split()) for text in unsaid)


def test_a_list_beside_another_is_named_with_its_words(tmp_path, capsys):
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    record = {
        "id": "1",
        "messages": messages,
        "notes": [{"n": n, "t": t} for n, t in enumerate(NOTES)],
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps([record]), encoding="utf-8")
    assert main(["corpus", "check", str(path)]) == 0
    printed = capsys.readouterr()
    shown = printed.out + printed.err
    assert "notes[].t: 2 texts" in shown
    assert "lost 12 (100%)" in shown
    assert "No problems" not in shown
    notes = Notes()
    list(find_own(path, notes))
    assert notes.account.remark()
    assert (
        main(["corpus", "convert", str(path), "--strict", "--output", str(tmp_path / "o.jsonl")])
        == 2
    )


def test_what_is_left_out_for_a_reason_is_not_lost():
    messages = [
        {"role": "system", "content": "You are a kind and helpful assistant"},
        {"role": "user", "content": "where is my parcel"},
        {"role": "assistant", "content": "it is in the hall"},
    ]
    account, texts = account_of([{"id": "1", "messages": messages}])
    assert texts == ["where is my parcel", "it is in the hall"]
    assert (account.words["said"], account.words["noted"], account.lost) == (9, 7, 0)


def test_an_account_of_nothing_has_lost_nothing():
    assert (Account().lost, Account().lines()) == (0, [])
