"""Topics that a person changes, gives or compares.

Edits are replayed or refused, shares have intervals.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from browser import BROWSER, Browser
from scipy import stats

import hf_dialemb
from hf_dialemb import Dialogue, InputError, Turn
from hf_dialemb.apps.flow.differences import parts_of
from hf_dialemb.apps.topics.edits import read_edits
from hf_dialemb.apps.topics.model import with_new
from hf_dialemb.apps.topics.topic_clustering import find_clusters
from hf_dialemb.apps.topics.topic_comparison import compared_topics, ends_of, lines_of
from hf_dialemb.apps.topics.topic_groups import no_groups

UNITS = np.repeat(np.eye(4, dtype=np.float32)[:3], [4, 3, 2], axis=0)
NAMES = [f"d{row}" for row in range(9)]


def groups():
    """Three topics, of d0 to d3, of d4 to d6, and of d7 and d8."""
    return no_groups(UNITS).with_more(UNITS, np.repeat([0, 1, 2], [4, 3, 2]).astype(np.int32))


def edited(tmp_path, *entries, of=None):
    path = tmp_path / "edits.yaml"
    path.write_text("".join(f"- {json.dumps(entry)}\n" for entry in entries), encoding="utf-8")
    return read_edits(path).edited(of or groups(), UNITS, NAMES)


def test_a_merged_topic_has_the_mean_of_its_dialogues_and_its_first_id(tmp_path):
    result = edited(
        tmp_path, {"merge": ["topic-3", "topic-1"]}, {"rename": "topic-3", "name": "cards"}
    )
    assert result.labels.tolist() == [1, 1, 1, 1, 0, 0, 0, 1, 1]
    assert result.ids == ["topic-2", "topic-3"]
    assert result.names == ["", "cards"]
    assert np.allclose(result.means[1], UNITS[[0, 1, 2, 3, 7, 8]].mean(axis=0))


def test_a_topic_is_split_by_its_vectors_and_numbers_are_never_used_again(tmp_path):
    one = edited(tmp_path, {"merge": ["topic-1", "topic-2", "topic-3"]})
    result = edited(tmp_path, {"split": "topic-1", "into": 3}, of=one)
    assert result.ids == ["topic-1", "topic-4", "topic-5"]
    assert result.labels.tolist() == groups().labels.tolist()
    assert np.allclose(result.means, groups().means)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"merge": ["topic-1", "topic-9"]},
            "entry 1: topic: got 'topic-9', expected one of topic-1, topic-2, topic-3",
        ),
        ({"merge": ["topic-1"]}, "at least two"),
        ({"rename": "topic-1", "name": " "}, "name: got ' ', expected a text"),
        ({"split": "topic-3", "into": 7}, "into: got 7, expected 2 to 2"),
        (
            {"split": "topic-1", "seen": {"topic-1": "d8"}},
            "which is on topic-3 now; make the edit again",
        ),
        ({"join": ["topic-1"]}, "expected an edit such as"),
        ({"split": "topic-1", "name": "x"}, "expected an edit such as"),
        ({"split": ["topic-1"]}, "expected an edit such as"),
        ({"merge": [["topic-1"], "topic-2"]}, "expected an edit such as"),
        ({"merge": "topic-1"}, "expected an edit such as"),
        ({"split": "topic-1", "seen": ["d1"]}, "expected an edit such as"),
        (["merge"], "expected an edit such as"),
    ],
)
def test_an_edit_that_cannot_be_is_one_sentence(tmp_path, entry, message):
    with pytest.raises(InputError) as raised:
        edited(tmp_path, entry)
    assert message in str(raised.value)
    assert "edits.yaml, entry 1" in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "- &a [*a]",
        "- merge: &a [topic-1]\n  seen: *a",
        "[" * 1_000,
        "- split: 'x\n",
        "\n".join(
            f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" if n else "- &a0 [x]" for n in range(9)
        ),
        "split: topic-1",
        "\x00",
    ],
    ids=["itself", "alias", "brackets", "quote", "billion", "mapping", "control"],
)
def test_a_file_of_edits_that_is_none_is_one_sentence(tmp_path, text):
    (tmp_path / "edits.yaml").write_text(text)
    with pytest.raises(InputError, match="list of edits"):
        read_edits(tmp_path / "edits.yaml")


def test_new_topics_are_unlike_the_known_and_those_take_back_what_fits():
    known = replace(groups().at([0, 1]), labels=np.full(9, -1, dtype=np.int32))
    assert with_new(known, UNITS).ids == ["topic-1", "topic-2"]  # two dialogues are no topic
    more = np.concatenate([UNITS, UNITS[7:], UNITS[7:]])
    result = with_new(replace(known, labels=known.assigned(more)), more)
    assert result.ids == ["topic-1", "topic-2", "topic-4"]
    assert result.labels.tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    two = np.repeat(np.float32([[0, 0, 1, 0.3], [0, 0, 1, -0.3]]), 6, axis=0) / np.sqrt(1.09)
    assert set(find_clusters(two).tolist()) == {0, 1}
    new = with_new(replace(known, labels=known.assigned(two)), two)
    assert new.labels.tolist() == [2] * 12  # their cosine is 0.83: they are one


def test_an_old_topic_is_split_in_the_next_month_and_both_parts_go_on(tmp_path):
    wants = ["my card was stolen", "I need a hotel room for two nights"] * 6
    calls = [Dialogue((Turn("user", f"{want} {n}"),)) for n, want in enumerate(wants)]
    hf_dialemb.find_topics(calls, "dialogue-static", topics=1).save(tmp_path / "january")
    (tmp_path / "edits.yaml").write_text("- split: topic-1")
    edits = read_edits(tmp_path / "edits.yaml")
    hf_dialemb.load_topics(tmp_path / "january").update(calls, edits=edits).save(tmp_path / "may")
    assigned = hf_dialemb.load_topics(tmp_path / "may").assign(calls)["topic"].tolist()
    assert assigned in (["topic-1", "topic-2"] * 6, ["topic-2", "topic-1"] * 6)


def records(*groups, **more):
    """Dialogues of groups, each a topic, a way to end, and how many."""
    return [
        {"topic": topic, "end": end, **more} for topic, end, count in groups for _ in range(count)
    ]


def test_topics_are_new_grow_or_end_worse_and_chance_is_neither():
    first = records(("a", "finished", 80), ("b", "finished", 20), score=4)
    second = records(("a", "finished", 30), ("a", "cancelled", 20), score=4)
    second += records(("b", "finished", 25), ("c", "failed", 25), score="2.5")
    names = {"a": "A", "b": "B", "c": "C"}
    comparison = compared_topics(names, (first, second), ("May", "June"), known=["a", "b"])
    assert lines_of([comparison]) == [
        "June, beside May: mean score 4 to 3.25",
        "June, beside May: end badly 0% to 45%",
        "June, beside May: failed 0% to 25%",
        "June, beside May: cancelled 0% to 20%",
        "May: 100 dialogues; June: 100 dialogues",
        "New topic: C, 0% to 25% of dialogues",
        "Less: A, 80% to 50% of dialogues",
        "Worse ends: A, cancelled 0% to 40% of its dialogues",
    ]
    by_name = {change.name: change for change in comparison.changes}
    assert by_name["B"].kind == ""
    assert by_name["A"].share.p == pytest.approx(
        2 * stats.fisher_exact([[80, 20], [50, 50]]).pvalue
    )
    score = comparison.ends[-1]
    scores = [4.0] * 100, [4.0] * 50 + [2.5] * 50
    assert score.p == pytest.approx(stats.mannwhitneyu(*scores).pvalue)
    assert score.effect == pytest.approx(-0.5)
    assert [part["end badly"] for part in comparison.parts] == [0, 0.45]
    same = compared_topics(names, (first, first), ("May", "June"))
    assert same.findings() == ["No topic differs more than chance explains"]
    assert ends_of([same]) == ["No end and no score differs more than chance explains"]


def test_parts_are_months_or_values_of_a_column():
    dialogues = [
        Dialogue(
            (Turn("user", "hi"),),
            f"{n}",
            (),
            f"2026-{n % 2 + 1:02d}-03",
            {"score": n, "team": "ab"[n > 20], "agent": "xyz"[n % 3]},
        )
        for n in range(60)
    ]
    sizes = {"month": [("2026-01", 30), ("2026-02", 30)], "team": [("a", 21), ("b", 39)]}
    for column, expected in sizes.items():
        (pair,) = parts_of(dialogues, column)
        assert [(name, len(rows)) for name, rows in pair] == expected
    pairs = parts_of(dialogues, "agent")
    assert [(first, second) for (first, _), (second, _) in pairs] == [
        ("others", name) for name in "xyz"
    ]
    assert all(sorted(before + after) == [*range(60)] for (_, before), (_, after) in pairs)
    with pytest.raises(InputError, match="got 0 values of 'score', expected 2 to 20"):
        parts_of(dialogues, "score")


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome is on PATH")
def test_changes_on_the_page_are_a_file_of_edits_that_does_them(tmp_path):
    wants = np.repeat(
        ["my card was stolen", "a train ticket to rome", "I need a hotel room"], [4, 3, 2]
    )
    dialogues = [
        Dialogue((Turn("user", f"<b>{want}</b>"),), name)
        for name, want in zip(NAMES, wants.tolist(), strict=True)
    ]
    found = hf_dialemb.find_topics(dialogues, vectors=UNITS, topics=3)
    sets = records(("topic-1", "finished", 90)), records(("topic-2", "failed", 90))
    comparison = compared_topics({"topic-1": "A", "topic-2": "B"}, sets, ("<i>May</i>", "June"))
    replace(found, comparisons=(comparison,)).page(tmp_path / "index.html")
    colours = "Object.fromEntries(page.data.topics.map(({ id }, n) => [id, page.map.colours[n]]))"
    with Browser(tmp_path / "profile") as page:
        page.open((tmp_path / "index.html").as_uri())
        page.until("typeof page === 'object' && page.sized")
        page.run("page.show({list: 'comparison'})")
        assert page.all("#panel .findings li")[::3] == [
            "June, beside <i>May</i>: end badly 0% to 100%",
            "Gone: A, 100% to 0% of dialogues",
        ]
        assert {"<i>May</i>: 0 %", "June: 0 %"} <= set(page.all("#panel .share span"))
        page.run("page.show({list: 'ends'})")
        assert page.all("#panel tbody td")[:4] == ["0 0 %", "0 0 %", "4 100 %", "0 0 %"]
        page.run("document.querySelector('#panel td button').click()")
        assert page.all("#panel .hit .soft") == ["d0", "d1", "d2", "d3"]
        page.run("page.show({topic: 'topic-2'})")
        page.run("document.querySelector('.edit input').value = 'lost: cards'")
        pressed = (
            "[...document.querySelectorAll('#panel button')].find((one) => one.textContent "
            "=== '{}').click()"
        )
        for name in ("Rename", "Merge", "Split", "Undo"):
            page.run(pressed.format(name))
        assert page.all(".changes b") == ["2 changes, not saved yet"]
        text = page.run("page.changes.text()")
        assert page.problems == []
        before = page.run(colours)
        page.run("page.data.topics.reverse(); page.map.paint()")  # as where another is the largest
        assert page.run(colours) == before
    (tmp_path / "edits.yaml").write_text(text, encoding="utf-8")
    edits = read_edits(tmp_path / "edits.yaml")
    assert [next(iter(entry)) for entry in edits.entries] == ["rename", "merge"]
    again = hf_dialemb.find_topics(dialogues, vectors=UNITS, topics=3, edits=edits)
    names = {topic.id: (topic.name, topic.size) for topic in again.by_size}
    assert names["topic-2"] == ("lost: cards", 7)
