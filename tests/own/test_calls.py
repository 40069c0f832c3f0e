"""Facts about the JSON of transcribed calls."""

import pytest
from vendors import drafts_of, examples, said

from hf_dialemb.corpora.own.calls import CALLS

EXAMPLES = examples("calls")


def test_each_form_has_an_example():
    assert {example["form"] for example in EXAMPLES} == {form.name for form in CALLS}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["form"])
def test_pieces_of_one_speaker_are_a_turn(example):
    drafts, forms, notes = drafts_of(example["file"])
    assert set(forms) == {example["form"]}
    assert said(drafts) == example["dialogues"]
    assert sorted(notes) == sorted(example["notes"])
    assert all(dict(draft.metadata) == example.get("metadata", {}) for draft in drafts)
