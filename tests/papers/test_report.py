"""The report of a benchmark, and its pictures."""

import base64
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from browser import BROWSER, Browser
from made_up_results import RUN, row

from hf_dialemb import drawing
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.maps import project, scatter
from hf_dialemb.evaluation.results.rows import Results
from hf_dialemb.papers.report import TITLE, Picture, opening, write_report

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
SCRIPT = "<script>alert(1)</script>"
VOID = {"meta", "link", "input", "img", "br", "hr", "wbr", "option"}  # an option needs no end tag
CONFIG = {"suite": "small", "left_out": ["amazonqa (response-selection)"], "not_measured": {}}
ROWS = (
    row("one", 70.0, std=0.5, n=2, interval=(69.0, 71.5)), row("two", 71.0),
    row("Printed", 99.0, quoted_from="A paper (Who et al., 2022), Table 2, row Printed"),
    row("one", -3.0, task="alignment-uniformity", metric="uniformity"),
    row("two", -2.0, task="alignment-uniformity", metric="uniformity"),
    row("one", 5.0, corpus="multiwoz"), row("one", 1.5, task="encoding", metric="seconds"),
)  # fmt: skip


class Page(HTMLParser):
    """Collects start tags, and fails where an element is not closed in its place."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["script"], ["style"]):
            self.words.append(data)

    @property
    def text(self):
        return " ".join("".join(self.words).split())


def written(tmp_path, rows=ROWS, pictures=(), run=None):
    path = tmp_path / "report.html"
    write_report([Results(RUN | (run or {"config": CONFIG}), tuple(rows))], pictures, path)
    return path.read_text(encoding="utf-8")


@pytest.fixture
def file(tmp_path):
    (tmp_path / "map.png").write_bytes(PNG)
    return tmp_path / "map.png"


def test_the_page_is_well_formed_and_needs_no_other_file(tmp_path, file):
    html = written(tmp_path, pictures=[Picture("map", "of items", file), Picture("two", "", file)])
    page = Page(html)
    assert ("html", {"lang": "en"}) in page.tags
    assert [attributes["alt"] for tag, attributes in page.tags if tag == "img"] == ["of items", "two"]
    for words in (
        TITLE, RUN["command"], "numpy 2.4.6", "abc123", "a machine, 2 cores", "1 h 2 min",
        "5 measured, 1 quoted", "amazonqa (response-selection)", "sgd (test), multiwoz (test)",
    ):  # fmt: skip
        assert words in page.text
    assert "seconds" not in page.text
    assert "Time2 s" in Page(written(tmp_path, run={"config": CONFIG, "seconds": 2.0})).text
    targets = [value for _, attributes in page.tags for name, value in attributes.items() if name in ("src", "href")]
    assert all(target.startswith(("#", "data:image/png;base64,")) for target in targets)
    assert f"data:image/png;base64,{base64.b64encode(PNG).decode()}" in targets
    assert not re.search(r"https?:|url\(|@import|<link|<iframe|fetch\(", html)
    anchors = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    assert {target[1:] for target in targets if target.startswith("#")} <= anchors


def test_figures_have_deviation_interval_bold_and_quotation_marks(tmp_path):
    html = written(tmp_path)
    assert html == written(tmp_path)
    assert '70.00 <span class="std">± 0.50</span> <span class="interval">[69.00, 71.50]</span>' in html
    assert '<b class="best">71.00</b>' in html  # of those measured: the quoted one is higher
    assert '<b class="best">-3.000</b>' in html  # of which lower is better
    assert html.count('class="best"') == 4  # with the legend's, and at the head
    assert html.count('class="none"') == 3
    assert re.search(r'class="quoted">99.00 <span class="mark">quoted <a href="#source-1-1">\[1\]</a>', html)
    assert "[1] quoted: A paper (Who et al., 2022), Table 2, row Printed" in Page(html).text
    assert "printed in a paper" in html
    assert "printed in a paper" not in written(tmp_path, ROWS[:2])
    both = Page(written(tmp_path, [row("one", 1.0), row("one", 2.0, quoted_from="paper, Table 1, row one")])).tags
    keys = [attributes["data-key"] for tag, attributes in both if tag == "th" and "data-key" in attributes]
    assert keys == ["corpus", "figure", "one", "quoted: one"]


def test_it_opens_with_who_is_first_at_what_by_corpora_that_all_have(tmp_path):
    intents = {"task": "intent-classification", "metric": "accuracy", "setting": "1-shot"}
    rows = [row("a", 50.0, "x"), row("b", 70.0, "x"), row("a", 90.0, "y"), row("a", 60.0, "z", **intents)]
    rows += [row("b", 40.0, "z", part=True, **intents), row("b", 30.0, "v", **intents), row("a", 99, learnt=True)]
    rows += [row("Printed", 75.0, "x", quoted_from="p"), row("Printed", 75.0, "z", quoted_from="p", **intents)]
    sentence, standings, headlines = opening([Results(RUN, tuple(rows))])
    assert sentence == "a and b come out level: the mean place of each is 1.5."
    assert [(one.model, one.rank) for one in standings] == [("a", 1.5), ("b", 1.5)]
    assert [[bar["text"] for bar in one["bars"]] for one in headlines] == [["50.0", "70.0"], ["60.0‡", "40.0‡"]]
    assert [(one["corpora"], one["printed"]) for one in headlines] == [(["x"], "Printed 75.0"), (["z"], "")]
    alone = opening([Results(RUN, tuple(rows[:2]))])[0]
    assert alone == "b comes out first: it is best, or level with the best, at the one task that is compared."
    html = written(tmp_path, rows)
    assert html.index(sentence) < html.index("Mean place") < html.index("All figures")
    assert "‡ Of a sample of the corpus: not comparable" in Page(html).text
    assert opening([Results(RUN, tuple(ROWS[2:3]))]) == ("", [], [])
    write_report([Results(RUN, ROWS)], [], tmp_path / "report.html", "3 of 8 are done.")
    assert 'http-equiv="refresh"' in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_names_cannot_run_as_code(tmp_path, file):
    quoted = row(SCRIPT, 2.0, quoted_from=SCRIPT)
    rows = [row(SCRIPT, 1.0, SCRIPT, SCRIPT, SCRIPT, SCRIPT), quoted, row('" onload="x', 1.0)]
    run = {"command": SCRIPT, "config": {"suite": SCRIPT, "left_out": [SCRIPT]}}
    html = written(tmp_path, rows, [Picture(SCRIPT, SCRIPT, file)], run)
    assert html.count("<script") == 1
    assert SCRIPT in Page(html).text
    assert not [attributes for _, attributes in Page(html).tags if "onload" in attributes]


def test_a_report_of_nothing_is_refused(tmp_path):
    for results in ([], [Results(RUN, ROWS[-1:])]):
        with pytest.raises(InputError, match="got no figure"):
            write_report(results, [], tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome is on PATH")
def test_a_browser_sorts_and_filters_as_the_address_and_the_heads_say(tmp_path):
    rows = [row("b", 2.0, "x"), row("b", 30.0, "y"), row("a", 9.0, "x"), row("b", 10.0, "z", "nli"), row("a", 5, "w")]
    written(tmp_path, rows)
    address, click = (tmp_path / "report.html").as_uri(), "document.querySelector('[data-key=\"b\"] button').click();"
    with Browser(tmp_path / "profile") as page:

        def shown(fragment, script=""):
            """The corpora of visible rows, and the sorted columns."""
            page.open("about:blank")
            page.open(f"{address}#{fragment}")
            page.until(f"location.href.startsWith('{address}') && document.readyState === 'complete'")
            page.run(script)
            heads = page.all("th[aria-sort]:not([aria-sort=none])", "[one.dataset.key, one.getAttribute('aria-sort')]")
            return page.all("tr[data-corpus]:not([hidden])", "one.dataset.corpus"), dict(heads)

        assert shown("sort=b&direction=descending") == (["y", "z", "x", "w"], {"b": "descending"})  # missing ones last
        assert shown("task=dialogue-retrieval&model=A&sort=corpus&direction=ascending")[0] == ["w", "x", "y"]
        assert page.all("th[data-hidden]", "one.dataset.key") == ["b"]
        assert "3 of 4 rows" in page.run("document.body.innerText")
        assert shown("task=dialogue-retrieval", click + click) == (["x", "y", "w"], {"b": "ascending"})
        assert page.run("location.hash") == "#table=1&sort=b&direction=ascending&task=dialogue-retrieval"
        assert shown("task=nli", f"{click}document.querySelector('[type=reset]').click()")[0] == ["x", "y", "z", "w"]
        # A name in the address is only compared.
        assert shown("sort=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&corpus=no") == ([], {})
        assert "onerror" not in page.run("document.documentElement.outerHTML")
        assert page.problems == []


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
