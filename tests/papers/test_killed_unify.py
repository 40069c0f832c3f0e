"""Unified corpora of runs that were killed.

They go on where they were, and end in the same files.
"""

import pytest
import test_killed_corpora
from test_killed_corpora import (
    test_killed_and_run_again_it_goes_on_and_ends_in_the_same_files,  # noqa: F401
    test_killed_while_its_parts_are_put_together_it_makes_none_again,  # noqa: F401
    test_parts_of_other_evaluation_sets_are_not_mixed_in,  # noqa: F401
    test_what_has_changed_since_the_kill_is_read_afresh,  # noqa: F401
    whole,  # noqa: F401
)

from hf_dialemb.papers.corpora import unify


def unify_all(data, output, evaluation=()):
    unify.unify(["one", "two"], data, output, evaluation=evaluation)


@pytest.fixture
def command():
    return unify_all


@pytest.fixture
def last():
    return unify, "_describe"


@pytest.fixture
def data(tmp_path, monkeypatch, sample_dialogues):
    monkeypatch.setattr(unify, "_ROWS", 5)
    return test_killed_corpora.registered(tmp_path, monkeypatch, sample_dialogues)
