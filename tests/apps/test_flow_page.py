"""The page of a flow, in a real browser.

It prunes as the package does, shows text as text, and is walked through."""

import json
import re

import numpy as np
import pytest
from browser import BROWSER, Browser, check_injected_scripts_are_blocked
from flow_words import ORDER, flow_of_turns, random_flow

from hf_dialemb.apps.flow.flow_comparison import compared, graph_of
from hf_dialemb.apps.flow.graph import END, START, Pruning, pruned
from hf_dialemb.apps.flow.paths import typical_path
from hf_dialemb.apps.pages.insights import insights
from hf_dialemb.apps.pages.page import Comparison, kept_dialogues, write_page

SETTINGS = [
    Pruning(),
    Pruning(0.023, 0.2),
    Pruning(0, 0),
    Pruning(0.2, 0.3),
    Pruning(0.6, 0.9),
    Pruning(0.98, 1.0),
]
HOSTILE = [
    "</script><script>hacked = 1</script>",
    '<img src=x onerror="hacked = 1">',
    "]]> {{ 7 * 7 }} {% raw %}",
    "<!-- <script> \u2028 & &amp; \\ ' \" `${hacked = 1}`",
    "\u202eשלום עולם\x00 مرحبا \ud800",
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome is on PATH"),
]
SAID = "[aria-current=step] .said"  # the turn that a dialogue is at


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as page:
        page.size(1400, 900)
        yield page
        assert page.problems == []


@pytest.fixture
def opened(browser, tmp_path):
    def of(flow, pruning=SETTINGS[0], fragment="", **more):
        write_page(flow, tmp_path / "index.html", pruning, **more)
        browser.open("about:blank")
        browser.open(f"{(tmp_path / 'index.html').as_uri()}{fragment}")
        browser.until(
            "document.readyState === 'complete' && typeof page === 'object' && page.graph !== null"
        )
        return browser

    return of


def search_for(page, text, found):
    page.run(
        f"search.focus(), search.value = {json.dumps(text)}, search.dispatchEvent(new "
        "Event('input'))"
    )
    page.until(f"found.querySelectorAll('[role=option]').length {found} && !found.hidden")


def panel(page, **view):
    if view:
        page.run(f"page.show({json.dumps(view)})")
    return " ".join(page.run("document.getElementById('panel').innerText").split())


def check_pruning(page, flow):
    """The page and the package leave the same states, transitions and weights, and have one main
    path."""
    names = [*(cluster.state for cluster in flow.clusters), START, END]
    for setting in SETTINGS:
        page.run(f"last = prune(page.flow, {json.dumps(vars(setting))})")
        edges = page.run("last.edges.map((edge) => [edge.source, edge.target, edge.weight])")
        expected = pruned(flow.graph, setting)
        assert {names[number] for number in page.run("last.states")} == set(expected.states)
        assert {
            (names[source], names[target]): weight for source, target, weight in edges
        } == expected.edges
    assert [names[number] for number in page.run("page.flow.main.states")] == list(
        typical_path(flow).states
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_the_page_prunes_and_finds_the_main_path_as_the_package_does(opened, seed):
    flow = random_flow(seed=seed)
    check_pruning(opened(flow), flow)
    assert {len(pruned(flow.graph, setting).nodes) for setting in SETTINGS} > {
        2
    }  # one setting leaves nothing


def test_lines_in_scripts_without_blanks_end_between_words(opened):
    page = opened(random_flow())
    lines = page.run(
        "[...Array(9).keys()].map((n) => wrapped('价格是441元。谢谢您。', 70 + 9 * n))"
    )
    assert len({first for first, _ in lines}) > 2
    assert not any(re.match("。|[14]+元", second) for _, second in lines if second[:3] != "441")


def test_text_is_shown_as_it_was_typed_and_nothing_runs(opened):
    turns = [
        ("user", name, text) for name, text in zip(HOSTILE, HOSTILE[1:] + HOSTILE[:1], strict=True)
    ]
    flow = flow_of_turns({name: turns for name in HOSTILE}, HOSTILE[0])
    page = opened(flow, choices={"user": HOSTILE[0]})
    assert page.all("h1") == [HOSTILE[0]]
    page.run("page.show({dialogue: page.flow.dialogues[0].id})")
    assert page.all(".said") == list(flow.utterances.texts[: len(turns)])
    for number in range(len(HOSTILE)):
        page.run(f"page.show({{tab: 'clusters', state: page.flow.states[{number}].id}})")
        assert page.all("#panel h2") == [page.run(f"page.flow.states[{number}].name")]
    assert page.all("img, #panel script, #view-clusters script") == []
    check_injected_scripts_are_blocked(page)


def test_the_panel_shows_a_state_and_its_neighbours(opened):
    page = opened(flow_of_turns(ORDER))
    text = panel(page, state="assistant-1")
    for part in (
        "assistant-1 · 3 utterances, 1 different · in 3 of 4 dialogues (75 %)",
        "What comes next place 100 % · 3 pairs What came before greet 100 % · 3 pairs",
        "where to? 3 ×",
        "Dialogues d1 d2 d3",
    ):
        assert part in text
    begins = "How dialogues begin greet 75 % · 3 pairs complain 25 % · 1 pairs"
    assert begins in panel(page, state="[start]")
    pairs = "Pairs of utterances hello where to? 2 × d1 d3 hi where to? d2"
    text = panel(page, edge="user-2>assistant-1")
    assert text == f"← Overview greet → ask 100 % of the time, 3 times {pairs}"
    page.run("[...document.querySelectorAll('#panel .chip')].at(-1).click()")
    assert page.all(SAID) == ["where to?"]


def test_mouse_and_keys_open_states_and_walk_through_dialogues(opened):
    page = opened(flow_of_turns(ORDER), Pruning(0, 0))
    number = page.run("page.flow.states.findIndex((state) => state.name === 'ask')")
    page.click(f".node[data-number='{number}']")
    assert page.all("#panel h2") == ["ask"]
    assert page.run("location.hash") == "#state=assistant-1"
    page.press("Escape")
    page.run(f"page.picture.nodes.get({number}).focus()")
    page.press("Enter")
    assert page.run("document.activeElement.closest('#panel') !== null")
    page.press("Escape")
    assert page.run("document.activeElement.dataset.number") == str(number)
    page.run("page.show({dialogue: 'd2'}), page.focusPanel()")
    page.press("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
    assert page.all(SAID) == ["where to?"]
    assert page.all(".node.current", "one.dataset.number") == [str(number)]


def test_search_finds_states_utterances_and_dialogues(opened):
    page = opened(flow_of_turns(ORDER))
    page.press("/")
    assert page.run("document.activeElement.id") == "search"
    for query, kinds, view in (
        ("comp", ["state"], {"state": "user-3", "dialogue": ""}),
        ("to rome", ["utterance"], {"dialogue": "d3", "turn": "3"}),
        ("D4", ["dialogue"], {"dialogue": "d4", "turn": ""}),
        ("nowhere", [], {"dialogue": "d4"}),
    ):
        search_for(page, query, f"=== {len(kinds)}")
        assert page.all("#found .kind") == kinds
        page.press("Enter")
        assert page.run("page.view").items() >= view.items()


def test_sliders_change_what_is_shown_and_the_main_path_is_marked(opened):
    page = opened(random_flow())
    before = page.run("page.graph.states.length")
    page.run("nodes.value = 60, nodes.dispatchEvent(new Event('input'))")
    page.until(f"page.graph.states.length < {before}")
    assert len(page.all(".node.state")) == page.run("page.graph.states.length")
    page.run("page.show({main: true})")
    assert len(page.all("#path > li")) == page.run("page.flow.main.states.length") > 0
    page.run("reset.click()")
    assert page.run("page.graph.states.length") == before


@pytest.mark.parametrize("states", [1, 3, 30, 100])
def test_the_layout_keeps_states_apart_and_has_start_first_and_end_last(opened, states):
    page = opened(random_flow(dialogues=300 if states > 1 else 1, states=states), Pruning(0, 0.02))
    places = page.run(
        "[...page.picture.layout.places.values()].map(({x, y, width, height}) => [x, y, width, "
        "height])"
    )
    assert len(places) == page.run("page.graph.states.length") + 2
    boxes = np.array(places)
    assert np.isfinite(boxes).all()
    gaps = (
        np.abs(boxes[:, None, :2] - boxes[None, :, :2])
        - (boxes[:, None, 2:] + boxes[None, :, 2:]) / 2
    )
    assert ((gaps > 0).any(-1) | np.eye(len(boxes), dtype=bool)).all()
    assert (boxes[:, 1].argmin(), boxes[:, 1].argmax()) == (0, len(boxes) - 1)


def test_two_sets_are_compared_in_colours_and_in_a_table(opened):
    made = {f"a{number}": ORDER["d1"] for number in range(40)} | {
        f"b{number}": ORDER["d4"] for number in range(40)
    }
    flow = flow_of_turns(made)
    graphs = [graph_of(flow, [name for name in made if name[0] == letter]) for letter in "ab"]
    page = opened(flow, comparison=Comparison(("January", "May"), (40, 40), compared(*graphs)))
    assert (len(page.all(".edge.gain")), len(page.all(".edge.loss"))) == (
        1,
        1,
    )  # how they begin differs
    assert "more in \u2068May\u2069" in page.all("#legend")[0]
    page.run("page.show({tab: 'compare'})")
    rows = page.all("#view-compare tbody tr", "one.innerText")
    assert len(rows) == len(flow.graph.edges)
    assert re.search(r"0 %\s+0\s+100 %\s+40\s+\+100\s+< 0.001", "\n".join(rows[:2]))
    assert re.search(
        r"100 %\s+40\s+–\s+0\s+–\s+–", "\n".join(rows[2:])
    )  # May never comes to most states
    assert "January\u2069: 100 % · \u2068May\u2069: – · p = –" in panel(
        page, edge="assistant-2>user-2"
    )


def test_on_a_phone_nothing_is_wider_than_the_screen(opened):
    page = opened(flow_of_turns(ORDER), fragment="#tab=clusters")
    page.size(390, 844)
    for tab in ("clusters", "map"):
        page.run(f"page.show({{tab: '{tab}'}})")
        assert page.run("document.documentElement.scrollWidth") == page.run("innerWidth") == 390
    page.size(1400, 900)


def data_of(flow, folder):
    write_page(flow, folder / "page.html", Pruning())
    page = (folder / "page.html").read_text(encoding="utf-8")
    return page, json.loads(
        re.search(r'<script type="application/json" id="flow">(.*?)</script>', page)[1]
    )


def test_the_page_needs_no_other_file(tmp_path):
    flow = random_flow()
    page, record = data_of(flow, tmp_path)
    assert page == data_of(flow, tmp_path)[0]
    assert not re.search(
        r"https?:(?!//www\.w3\.org/2000/svg)|url\(|@import|<link|<iframe|fetch\(|\beval\(", page
    )
    assert page.count("<script") == page.count("</script>")
    assert sum(state["size"] for state in record["states"]) == len(flow.utterances)
    names = [*(one.state for one in flow.clusters), START, END]
    assert {
        (names[source], names[target]): count for source, target, count in record["edges"]
    } == flow.graph.edges


def test_insights_are_told_in_sentences_in_which_names_turn_no_direction(tmp_path):
    flow = flow_of_turns(ORDER)
    assert [row["text"] for row in insights(flow)][:2] == [
        "Failed: 1 dialogue, 25%",
        'Failed at "\u2068sorry\u2069": 1 dialogue',
    ]
    flow = flow_of_turns(
        {"d\u202e1": [("user", "pay\u202eme\n\x1b[31m", "pay")], "d2": [("user", "שלום", "שלום")]}
    )
    assert not any("\u202e" in row["text"] for row in insights(flow))
    states = data_of(flow, tmp_path)[1]["states"]
    assert {state["name"] for state in states} == {"pay\\u202eme \\x1b[31m", "שלום"}


def test_the_page_keeps_named_dialogues_unless_they_are_too_long(tmp_path):
    flow, wanted = random_flow(dialogues=400), ["d399", "d7"]
    assert kept_dialogues(flow) == list(range(400))
    kept = kept_dialogues(flow, wanted, most=200)
    assert len(kept) == 200
    assert {7, 399} <= set(kept)
    assert kept_dialogues(flow, ["d5"], characters=1) == [5]
    page, record = data_of(
        flow_of_turns({"one": [("user", "say", "x" * 4_000_000)], **ORDER}), tmp_path
    )
    assert [dialogue["id"] for dialogue in record["dialogues"]] == ["one", *ORDER]
    assert max(map(len, record["texts"])) == 2000
    assert len(page) < 300_000
