"""The report of a benchmark, and its pictures."""

import numpy as np
import pytest
from made_up_results import RUN, row

from hf_dialemb import drawing
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.maps import project, scatter
from hf_dialemb.evaluation.results.result_tables import paper_table
from hf_dialemb.evaluation.results.rows import Results
from hf_dialemb.papers.benchmark_report import TITLE, Picture, opening, write_report

CONFIG = {
    "suite": "small",
    "left_out": ["amazonqa (response-selection)"],
    "not_measured": {"one, sgd": "no vectors"},
}
ROWS = (
    row("one", 70.0, std=0.5, n=2, interval=(69.0, 71.5)),
    row("two", 71.0),
    row("Printed", 99.0, quoted_from="A paper (Who et al., 2022), Table 2, row Printed"),
    row("one", -3.0, task="alignment-uniformity", metric="uniformity"),
    row("two", -2.0, task="alignment-uniformity", metric="uniformity"),
    row("one", 5.0, corpus="multiwoz"),
    row("one", 1.5, task="encoding", metric="seconds"),
)


def written(tmp_path, rows=ROWS, pictures=(), going_on=""):
    path = tmp_path / "report.md"
    write_report([Results(RUN | {"config": CONFIG}, tuple(rows))], pictures, path, going_on)
    return path.read_text(encoding="utf-8")


def test_the_report_has_the_table_of_the_suite_and_what_is_missing(tmp_path):
    pictures = [Picture("A map", "of items", tmp_path / "pictures" / "map.png")]
    text = written(tmp_path, pictures=pictures, going_on="3 of 8 are done.")
    assert text == written(tmp_path, pictures=pictures, going_on="3 of 8 are done.")
    for part in (
        f"# {TITLE}\n\n3 of 8 are done.\n\n",
        f"## small\n\n{paper_table(ROWS)}",
        RUN["command"],
        "- Left out: amazonqa (response-selection)\n- Not measured: one, sgd: no vectors\n",
        "## A map\n\n![of items](pictures/map.png)\n\nof items\n",
    ):
        assert part in text
    assert "seconds" not in text


def test_it_opens_with_who_is_first_at_what_by_corpora_that_all_have(tmp_path):
    intents = {"task": "intent-classification", "metric": "accuracy", "setting": "1-shot"}
    rows = [
        row("a", 50.0, "x"),
        row("b", 70.0, "x"),
        row("a", 90.0, "y"),
        row("a", 60.0, "z", **intents),
    ]
    rows += [
        row("b", 40.0, "z", part=True, **intents),
        row("b", 30.0, "v", **intents),
        row("a", 99, learnt=True),
    ]
    rows += [
        row("Printed", 75.0, "x", quoted_from="p"),
        row("Printed", 75.0, "z", quoted_from="p", **intents),
    ]
    sentence, standings, headlines = opening([Results(RUN, tuple(rows))])
    assert sentence == "a and b come out level: the mean place of each is 1.5."
    assert [(one.model, one.rank) for one in standings] == [("a", 1.5), ("b", 1.5)]
    assert [one.figures for one in headlines] == [
        {"a": "50.0", "b": "**70.0**"},
        {"a": "**60.0‡**", "b": "40.0‡"},
    ]
    assert [(one.corpora, one.printed) for one in headlines] == [
        (["x"], "Printed 75.0"),
        (["z"], ""),
    ]
    alone = opening([Results(RUN, tuple(rows[:2]))])[0]
    assert (
        alone == "b comes out first: it is best, or level with the best, at the one task that is "
        "compared."
    )
    text = written(tmp_path, rows)
    assert (
        text.index(sentence)
        < text.index("Mean place")
        < text.index("Best in papers")
        < text.index("## small")
    )
    assert "‡ Of a sample of the corpus: not comparable" in text
    assert opening([Results(RUN, tuple(ROWS[2:3]))]) == ("", [], [])


def test_a_report_of_nothing_is_refused(tmp_path):
    for results in ([], [Results(RUN, ROWS[-1:])]):
        with pytest.raises(InputError, match="got no figure"):
            write_report(results, [], tmp_path / "report.md")
    assert not list(tmp_path.iterdir())


imread = pytest.importorskip("matplotlib.image").imread


@pytest.fixture(autouse=True)
def small_pictures(monkeypatch):
    """Fewer pixels, which take less time and show the same."""
    monkeypatch.setattr(drawing, "DPI", 50)


def colours(path):
    """Counts the colours of a picture, near ones as one."""
    return len(np.unique(np.round(imread(path)[..., :3].reshape(-1, 3), 1), axis=0))


def test_a_projection_is_finite_and_of_directions():
    assert (project(np.eye(4)).shape, project(np.eye(4)[:2]).shape) == ((4, 2), (2, 2))
    assert not project(np.ones((30, 3))).any()
    assert np.isfinite(project(np.random.default_rng(0).normal(size=(12, 1)))).all()
    vectors = np.random.default_rng(0).normal(size=(9, 6))
    np.testing.assert_allclose(project(vectors), project(vectors * 7), atol=1e-9)


@pytest.mark.slow
def test_maps_have_several_colours_and_are_the_same_again(tmp_path):
    random = np.random.default_rng(0)
    flat = {"one": random.normal(size=(75, 4)), "two": random.normal(size=(75, 1))}
    for name in ("one", "two"):
        scatter(flat, [f"label {row % 25} $x_1$" for row in range(75)], tmp_path / f"{name}.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    assert colours(tmp_path / "one.png") > 20
    with pytest.raises(InputError, match="got no model"):
        scatter({}, ["a", "b"], tmp_path / "none.png")
