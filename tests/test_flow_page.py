"""The page of a flow, in a real browser: it prunes as the package does, shows text as text, and is walked through."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from browser import BROWSER, Browser

from hf_dialemb.corpora import load_dialogues
from hf_dialemb.flow.clustering import Choice
from hf_dialemb.flow.comparison import Comparison, compared, graph_of
from hf_dialemb.flow.flow import flow_of_actions, grouped, read_utterances
from hf_dialemb.flow.graph import END, START
from hf_dialemb.flow.page.insights import insights
from hf_dialemb.flow.page.page import Row, Section, kept_dialogues, write_page
from hf_dialemb.flow.paths import widest_path
from hf_dialemb.flow.pruning import PROGRAM, Pruning, pruned
from hf_dialemb.models.dialogue import Dialogue, Turn


def in_a_browser(test):
    return pytest.mark.slow(pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome is on PATH")(test))


SETTINGS = [
    Pruning(), PROGRAM, Pruning(0, 0), Pruning(0.2, 0.3, "prob-out"), Pruning(0.05, 0.05, "max"), Pruning(0.6, 0.9),
    Pruning(0.98, 1.0, "prob-out"),
]  # fmt: skip
HOSTILE = [
    "</script><script>hacked = 1</script>",
    '<img src=x onerror="hacked = 1">',
    "<!-- <script> \u2028 & &amp; \\ ' \" `${hacked = 1}`",
    "\u202eשלום עולם\x00 مرحبا \ud800",
    "]]> {{ 7 * 7 }} {% raw %}",
]


def flow_of(dialogues, title="A flow"):
    """Builds a flow of dialogues that are lists of (role, name of state, text)."""
    said = [Dialogue(tuple(Turn(role, text) for role, _, text in turns), id=name) for name, turns in dialogues.items()]
    names = [(role, name) for turns in dialogues.values() for role, name, _ in turns]
    return grouped(title, read_utterances(said), names)


def random_flow(dialogues=150, states=12, turns=12, seed=0):
    """A flow in which dialogues walk about at random, some ways more often than others."""
    rng = np.random.default_rng(seed)
    ways = {role: rng.dirichlet(np.full(states, 0.25), states) for role in ("user", "assistant")}
    made = {}
    for number in range(dialogues):
        path, place = [], int(rng.integers(states))
        for turn in range(int(rng.integers(1, turns + 1))):
            role = "user" if turn % 2 == 0 or rng.random() < 0.1 else "assistant"
            place = int(rng.choice(states, p=ways[role][place]))
            path.append((role, f"{role} says {place}", f"{role} words {place} {int(rng.integers(4))}"))
        made[f"d{number}"] = path
    return flow_of(made)


HELLO, ASK, BYE = ("user", "greet", "hello"), ("assistant", "ask", "where to?"), ("assistant", "bye", "done")
ORDER = {
    "d1": [HELLO, ASK, ("user", "place", "Paris"), BYE],
    "d2": [("user", "greet", "hi"), ASK, ("user", "place", "Rome"), BYE],
    "d3": [HELLO, ASK, ("user", "place", "to Rome"), ("user", "place", "please")],
    "d4": [("user", "complain", "it is broken"), ("assistant", "bye", "sorry")],
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as page:
        page.size(1400, 900)
        yield page
        assert page.problems == []


@pytest.fixture
def opened(browser, tmp_path):
    """Writes a page and opens it."""

    def of(flow, *words, fragment="", **more):
        path = tmp_path / "index.html"
        write_page(flow, path, *words, **more)
        browser.open("about:blank")
        browser.open(f"{path.as_uri()}{fragment}")
        browser.until("document.readyState === 'complete' && typeof page === 'object' && page.graph !== null")
        return browser

    return of


def data_of(flow, tmp_path, *words, **more):
    write_page(flow, tmp_path / "page.html", *words, **more)
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    return html, json.loads(re.search(r'<script type="application/json" id="flow">(.*?)</script>', html)[1])


def press(page, *keys):
    for key in keys:
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        page.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        page.send("Input.dispatchKeyEvent", type="keyUp", key=key)


def click(page, selector):
    place = page.run(
        f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
        "return [b.x + b.width / 2, b.y + b.height / 2] })()"
    )
    for kind in ("mousePressed", "mouseReleased"):
        page.send("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)


def panel(page):
    return " ".join(page.run("document.getElementById('panel').innerText").split())


def text_of(page, selector):
    return page.run(f"document.querySelector({json.dumps(selector)}).textContent")


def texts_of(page, selector):
    return page.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)")


def count_of(page, selector):
    return page.run(f"document.querySelectorAll({json.dumps(selector)}).length")


def check_pruning(page, flow, setting):
    """The page and the package leave the same states, transitions, weights and widest path."""
    names = [*(cluster.state for cluster in flow.clusters), START, END]
    record = page.run(
        f"""(() => {{
          const graph = prune(page.flow, {json.dumps(vars(setting))})
          return {{states: graph.states, edges: graph.edges.map((edge) => [edge.source, edge.target, edge.weight]),
            path: widestPath(page.flow, graph)}}
        }})()"""
    )
    expected = pruned(flow.graph, setting)
    assert {names[number] for number in record["states"]} == set(expected.states)
    assert {(names[source], names[target]): weight for source, target, weight in record["edges"]} == expected.edges
    widest = widest_path(expected)
    assert [names[number] for number in record["path"][1:-1]] == list(widest.states if widest else ())


@in_a_browser
@pytest.mark.parametrize("seed", [0, 1])
def test_the_page_prunes_and_finds_the_main_path_as_the_package_does(opened, seed):
    flow = random_flow(seed=seed)
    page = opened(flow)
    for setting in SETTINGS:
        check_pruning(page, flow, setting)
    assert {len(pruned(flow.graph, setting).nodes) for setting in SETTINGS} > {2}  # one setting leaves nothing


@pytest.mark.slow
@in_a_browser
def test_a_real_domain_is_pruned_clicked_searched_and_walked_through(opened, data_dir):
    dialogues = [one for one in load_dialogues("sgd", data_dir, "test") if one.domains == ("Hotels_2",)]
    flow = flow_of_actions(read_utterances(dialogues), "Hotels")
    page = opened(flow)
    for setting in SETTINGS:
        check_pruning(page, flow, setting)
    states = page.run("page.graph.states.length")
    page.run("nodes.value = 80, nodes.dispatchEvent(new Event('input'))")
    page.until(f"page.graph.states.length < {states}")
    page.run("document.getElementById('reset').click()")
    assert page.run("page.graph.states.length") == states
    number = page.run(  # of a state that is on the screen
        """(() => {
          const within = (node) => { const b = node.getBoundingClientRect()
            return node.contains(document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2)) }
          return Number([...document.querySelectorAll('.node.state')].find(within).dataset.number)
        })()"""
    )
    click(page, f".node[data-number='{number}']")
    assert text_of(page, "#panel h2") == page.run(f"page.flow.states[{number}].name")
    assert "What comes next" in panel(page)
    said = dialogues[0].turns[0].content
    page.run(f"search.focus(), search.value = {json.dumps(said)}, search.dispatchEvent(new Event('input'))")
    page.until("found.querySelectorAll('[role=option]').length > 0 && !found.hidden")
    press(page, "Enter")
    shown = text_of(page, "[aria-current=step] .said")
    assert shown == said
    page.run("page.focusPanel()")
    press(page, "ArrowRight")
    assert text_of(page, "[aria-current=step] .said") == dialogues[0].turns[1].content
    page.run("page.show({dialogue: '', main: true})")
    assert count_of(page, ".edge.main") == page.run("page.main.length") - 1 > 2


@in_a_browser
def test_text_is_shown_as_it_was_typed_and_nothing_runs(opened):
    turns = [("user", name, text) for name, text in zip(HOSTILE, HOSTILE[1:] + HOSTILE[:1], strict=True)]
    flow = flow_of({name: turns for name in HOSTILE}, HOSTILE[0])
    rows = (Row(HOSTILE[1], (HOSTILE[0],), (flow.clusters[0].state,)),)
    choice = Choice("number", 5, 5, ((2, 0.5, 0.1), (5, 0.4, 0.3)), HOSTILE[0])
    page = opened(
        flow,
        insights=[Section(HOSTILE[0], HOSTILE[1], rows)],
        facts=[(HOSTILE[0], HOSTILE[1])],
        choices={"user": choice},
    )
    assert text_of(page, "h1") == HOSTILE[0]
    page.run("page.show({dialogue: page.flow.dialogues[0].id})")
    said = texts_of(page, ".said")
    assert said == list(flow.utterances.texts[: len(turns)])
    for tab in ("clusters", "about", "map"):
        page.run(f"page.show({{tab: '{tab}'}})")
    for number in range(len(HOSTILE)):
        page.run(f"page.show({{state: page.flow.states[{number}].id}})")
        assert text_of(page, "#panel h2") == page.run(f"page.flow.states[{number}].name")
    assert page.run("typeof hacked") == "undefined"
    assert count_of(page, "img, #panel script, #view-about script") == 0
    # Even what gets into the page is not run: its policy names the scripts that are.
    page.run("document.body.append(Object.assign(document.createElement('script'), {textContent: 'hacked = 1'}))")
    assert page.run("typeof hacked") == "undefined"
    page.problems.clear()  # the browser reports the script that it did not run


def test_the_file_needs_no_other_and_is_the_same_every_time(tmp_path):
    flow = random_flow()
    html, record = data_of(flow, tmp_path)
    assert html == data_of(flow, tmp_path)[0]
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)|url\(|@import|<link|<iframe|fetch\(|\beval\(", html)
    assert html.count("<script") == html.count("</script>")
    assert sum(state["size"] for state in record["states"]) == len(flow.utterances)
    assert {(source, target): count for source, target, count in record["edges"]} == {
        tuple([*(one.state for one in flow.clusters), START, END].index(state) for state in edge): count
        for edge, count in flow.graph.edges.items()
    }


@in_a_browser
def test_a_state_tells_what_is_said_and_what_is_around_it(opened):
    page = opened(flow_of(ORDER))
    page.run("page.show({state: 'assistant-1'})")
    text = panel(page)
    assert "assistant-1 · 3 utterances, 1 different · in 3 of 4 dialogues (75 %)" in text
    assert "What comes next place 100 % · 3 pairs" in text
    assert "What came before greet 100 % · 3 pairs" in text
    assert "where to? 3 ×" in text
    assert re.search(r"Dialogues d1 d2 d3$", text)
    page.run("page.show({state: 'start'})")
    assert "How dialogues begin greet 75 % · 3 pairs complain 25 % · 1 pairs" in panel(page)


@in_a_browser
def test_a_transition_shows_the_pairs_of_utterances_on_it(opened):
    page = opened(flow_of(ORDER), fragment="#edge=user-2>assistant-1")
    assert panel(page) == (
        "← Overview greet → ask 100 % of the time, 3 times "
        "Pairs of utterances hello where to? 2 × d1 d3 hi where to? d2"
    )
    page.run("[...document.querySelectorAll('#panel .chip')].at(-1).click()")
    assert text_of(page, "[aria-current=step] .said") == "where to?"
    page = opened(flow_of(ORDER), fragment="#edge=user-1>end")
    assert panel(page).endswith("How they end please d3")


@in_a_browser
def test_mouse_and_keys_open_states_and_walk_through_dialogues(opened):
    page = opened(flow_of(ORDER), Pruning(0, 0))
    number = page.run("page.flow.states.findIndex((state) => state.name === 'ask')")
    click(page, f".node[data-number='{number}']")
    assert text_of(page, "#panel h2") == "ask"
    assert "state=assistant" in page.run("location.hash")
    press(page, "Escape")
    assert page.run("location.hash") == ""
    page.run("document.querySelector('.node[tabindex=\"0\"]').focus()")
    press(page, "ArrowDown", "Enter")
    assert page.run("page.view.state") != ""
    assert page.run("document.activeElement.closest('#panel') !== null")
    press(page, "Escape")
    assert page.run("document.activeElement.classList.contains('node')")
    page.run("page.show({dialogue: 'd2'}), page.focusPanel()")
    press(page, "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
    assert text_of(page, "[aria-current=step] .said") == "where to?"
    assert page.run("document.querySelector('.node.current').dataset.number") == str(number)
    press(page, "n")
    assert page.run("page.view.dialogue") == "d3"
    press(page, "p", "p", "p")
    assert page.run("page.view.dialogue") == "d1"
    page.run("history.back()")
    page.until("page.view.dialogue === 'd2'")


@in_a_browser
def test_the_picture_is_dragged_and_zoomed_and_a_drag_is_no_click(opened):
    page = opened(random_flow(), Pruning(0, 0))
    seen = "[page.picture.x, page.picture.y, page.picture.scale]"
    before = page.run(seen)
    start = {"x": 700, "y": 400, "button": "left"}
    page.send("Input.dispatchMouseEvent", type="mousePressed", clickCount=1, **start)
    page.send("Input.dispatchMouseEvent", type="mouseMoved", x=760, y=380, button="left", buttons=1)
    page.send("Input.dispatchMouseEvent", type="mouseReleased", clickCount=1, x=760, y=380, button="left")
    assert np.allclose(page.run(seen), [before[0] + 60, before[1] - 20, before[2]])
    assert page.run("location.hash") == ""
    box = page.run("(({x, y}) => [x, y])(document.getElementById('graph').getBoundingClientRect())")
    under = "((x, y) => [(x - page.picture.x) / page.picture.scale, (y - page.picture.y) / page.picture.scale])"
    pointed = page.run(f"{under}({700 - box[0]}, {400 - box[1]})")
    page.send("Input.dispatchMouseEvent", type="mouseWheel", x=700, y=400, deltaX=0, deltaY=-200)
    page.until(f"page.picture.scale > {before[2] * 1.1}")
    assert np.allclose(page.run(f"{under}({700 - box[0]}, {400 - box[1]})"), pointed)
    press(page, "-", "-", "0")
    fitted = page.run(seen)
    press(page, "+")
    assert page.run("page.picture.scale") == pytest.approx(1.25 * fitted[2])
    assert page.run("!document.querySelector('.minimap').hidden")


@in_a_browser
def test_the_page_is_dark_or_light(opened):
    page = opened(flow_of(ORDER))
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.run(ground) == "rgb(255, 255, 255)"
    click(page, "#theme")
    assert page.run(ground) == "rgb(20, 23, 27)"
    click(page, "#theme")
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert page.run(ground) == "rgb(255, 255, 255)"
    page.run("delete document.documentElement.dataset.theme")
    assert page.run(ground) == "rgb(20, 23, 27)"
    page.send("Emulation.setEmulatedMedia", features=[])


@in_a_browser
def test_search_finds_states_utterances_and_dialogues(opened):
    page = opened(flow_of(ORDER))
    press(page, "/")
    assert page.run("document.activeElement.id") == "search"
    for query, kinds, view in (
        ("comp", ["state"], {"state": "user-3", "dialogue": ""}),
        ("to rome", ["utterance"], {"dialogue": "d3", "turn": "3"}),
        ("D4", ["dialogue"], {"dialogue": "d4", "turn": ""}),
        ("nowhere", [], {"dialogue": "d4"}),
    ):
        page.run(f"search.focus(), search.value = {json.dumps(query)}, search.dispatchEvent(new Event('input'))")
        page.until(f"found.querySelectorAll('[role=option]').length === {len(kinds)} && !found.hidden")
        assert texts_of(page, "#found .kind") == kinds
        press(page, "Enter")
        assert {name: page.run(f"page.view.{name}") for name in view} == view


@pytest.mark.slow
@in_a_browser
def test_sliders_change_what_is_shown_and_the_address_keeps_it(opened):
    page = opened(random_flow())
    before = page.run("page.graph.states.length")
    page.run("nodes.value = 60, nodes.dispatchEvent(new Event('input'))")
    page.until(f"page.graph.states.length < {before}")
    assert count_of(page, ".node.state") == page.run("page.graph.states.length")
    page.run(
        "weights.value = 'max', weights.dispatchEvent(new Event('change')), page.show({main: true, state: 'user-2'})"
    )
    address, states = page.run("location.hash"), page.run("page.graph.states")
    assert address == "#state=user-2&nodes=0.36&weights=max&main=yes"
    page = opened(random_flow(), fragment=address)
    assert page.run("page.graph.states") == states
    assert count_of(page, ".edge.main") == page.run("page.main.length") - 1
    assert page.run("document.querySelector('#path').children.length") == page.run("page.main.length") - 2
    page.run("document.getElementById('reset').click()")
    assert page.run("page.graph.states.length") == before
    page.run("document.querySelector('[data-most=\"10\"]').click()")
    assert 5 < page.run("page.graph.states.length") <= 10
    assert text_of(page, "#presets [aria-pressed=true]") == "10"
    page.run("document.querySelector('#presets').lastChild.click()")
    assert page.run("page.view.nodes") == 0
    assert page.run("page.graph.states.length") == page.run("page.flow.states.length")  # transitions do not hide any


@in_a_browser
def test_an_address_that_makes_no_sense_is_passed_over(opened):
    words = "state=no&edge=a%3Eb&nodes=7&edges=x&weights=&tab=no&dialogue=%F0%9F&colour=difference&constructor=1"
    view = opened(flow_of(ORDER), fragment=f"#{words}").run("page.view")
    expected = {"tab": "map", "colour": "count", **vars(Pruning())}
    assert {name: view.pop(name) for name in expected} == expected
    assert not any(view.values())


@in_a_browser
def test_thresholds_that_leave_nothing_are_told(opened):
    page = opened(flow_of(ORDER), Pruning(0.99, 1.0))
    assert page.run("page.graph.states.length") == 0
    assert "Nothing is left" in text_of(page, "#message")
    page.run("document.getElementById('nodes').value = 0, page.show({nodes: 0, edges: 0})")
    assert text_of(page, "#message") == ""
    assert count_of(page, ".node.state") == 5


@pytest.mark.slow
@in_a_browser
@pytest.mark.parametrize("states", [1, 3, 30, 100])
def test_the_layout_keeps_states_apart_and_has_start_first_and_end_last(opened, states):
    page = opened(random_flow(dialogues=300 if states > 1 else 1, states=states), Pruning(0, 0.02))
    places = page.run("[...page.picture.layout.places.values()].map(({x, y, width, height}) => [x, y, width, height])")
    assert len(places) == page.run("page.graph.states.length") + 2
    boxes = np.array(places)
    assert np.isfinite(boxes).all()
    gaps = np.abs(boxes[:, None, :2] - boxes[None, :, :2]) - (boxes[:, None, 2:] + boxes[None, :, 2:]) / 2
    apart = (gaps > 0).any(-1) | np.eye(len(boxes), dtype=bool)
    assert apart.all()
    assert boxes[:, 1].argmin() == 0
    assert boxes[:, 1].argmax() == len(boxes) - 1
    routes = page.run("[...page.picture.layout.routes.values()].map(({points, back, flat}) => [points, back, flat])")
    for points, back, flat in routes:
        assert np.isfinite(points).all()
        heights = [y for _, y in points]
        assert flat or heights == sorted(heights, reverse=back)


@pytest.mark.slow
@in_a_browser
def test_a_dialogue_of_ten_thousand_turns_opens(opened):
    turns = [("user" if turn % 2 else "assistant", f"state {turn % 7}", f"turn {turn}") for turn in range(10_000)]
    page = opened(flow_of({"long": turns}), fragment="#dialogue=long&turn=9999")
    assert count_of(page, ".turn") == 10_000
    assert text_of(page, "[aria-current=step] .said") == "turn 9998"


@pytest.mark.slow
@in_a_browser
def test_two_sets_are_compared_in_colours_and_in_a_table(opened):
    made = {f"a{number}": ORDER["d1"] for number in range(40)} | {f"b{number}": ORDER["d4"] for number in range(40)}
    flow = flow_of(made)
    graphs = [graph_of(flow, [name for name in made if name[0] == letter]) for letter in "ab"]
    page = opened(flow, comparison=Comparison(("January", "May"), (40, 40), compared(*graphs)))
    assert count_of(page, ".edge.gain") == 1  # how they begin differs
    assert count_of(page, ".edge.loss") == 1
    assert "more in \u2068May\u2069" in text_of(page, "#legend")
    page.run("page.show({colour: 'count'})")
    assert page.run("location.hash + document.querySelectorAll('.edge.gain, .edge.loss').length") == "#colour=count0"
    page.run("page.show({tab: 'compare'})")
    rows = page.run("[...document.querySelectorAll('#view-compare tbody tr')].map((row) => row.innerText)")
    assert len(rows) == len(flow.graph.edges)
    assert re.search(r"0 %\s+0\s+100 %\s+40\s+\+100\s+< 0.001", "\n".join(rows[:2]))
    assert re.search(r"100 %\s+40\s+–\s+0\s+–\s+–", "\n".join(rows[2:]))  # May never comes to most states
    page.run("page.show({tab: 'map', edge: page.flow.edges.find((edge) => edge.source < page.flow.start).key})")
    assert re.search(r"(\d+ %|–) · .May.: (\d+ %|–) · p = –", panel(page))
    flow = flow_of(ORDER)
    graphs = [graph_of(flow, names) for names in (["d1", "d2"], ["d3", "d4"])]
    page = opened(flow, comparison=Comparison(("January", "Ma\u202ey"), (2, 2), compared(*graphs), ["d3", "d4"]))
    page.run("page.show({dialogue: 'd4'})")  # which says of which set it is
    assert "Ma\\u202ey · 2 turns" in panel(page)
    page.run("page.show({state: 'assistant-1'})")
    assert panel(page).endswith("Dialogues d1January d2January d3Ma\\u202ey")


@in_a_browser
@pytest.mark.parametrize("answers", [3, 16, 60])
def test_the_map_is_whole_at_first_or_begins_at_an_edge_and_leaves_room_for_buttons(opened, answers):
    made = {f"d{place}": [HELLO, ("assistant", f"answer {place}", "fine"), BYE] for place in range(answers)}
    page = opened(flow_of(made), Pruning(0, 0))
    rectangles = (
        "(selector) => [...document.querySelectorAll(selector)].map((part) =>"
        "(({left, right, top, bottom}) => [left, right, top, bottom])(part.getBoundingClientRect()))"
    )
    boxes = np.array(page.run(f"({rectangles})('.node .box')"))
    (frame,), (buttons,), (legend,) = (page.run(f"({rectangles})('{name}')") for name in ("#graph", ".zoom", "#legend"))
    left, right = boxes[:, 0].min(), boxes[:, 1].max()
    assert boxes[:, 2].min() > frame[2]
    if page.run("page.picture.scale") != page.run("READABLE"):  # all is in view
        assert frame[0] < left < right < buttons[0]
        assert boxes[:, 3].max() < legend[2]
    else:
        assert left <= frame[0] + 25 or right >= buttons[0] - 10


def test_the_page_tells_settings_in_words(tmp_path):
    flow = replace(
        flow_of(ORDER),
        settings={
            "model": "some-encoder", "vectors": "0123456789abcdef", "corpus": "calls", "split": "all",
            "chosen_by": {"user": "chosen", "assistant": "chosen"}, "clusters": {"user": 3, "assistant": 2},
            "names": "nearest", "of_mine": None, "smooth_by": 3,
        },
    )  # fmt: skip
    settings = dict(data_of(flow, tmp_path)[1]["settings"])
    assert settings["how many states there are was decided by"] == "the bend of the curve of distances"
    assert settings["states of each speaker"] == "user: 3, assistant: 2"
    assert settings["names of states are"] == "their most typical utterance"
    assert settings["smooth by"] == "3"
    assert not {"vectors", "of mine", "0123456789abcdef"} & {*settings, *settings.values()}


@in_a_browser
def test_the_table_of_states_sorts_and_tells_why_there_are_so_many(opened):
    curve = ((2, 0.9, 0.1), (3, 0.8, 0.4), (4, 0.7, 0.2), (5, 0.6, float("nan")))
    page = opened(
        flow_of(ORDER), choices={"user": Choice("chosen", 0.4, 3, curve, "Three fit best.")}, fragment="#tab=clusters"
    )
    column = "[...document.querySelectorAll('#view-clusters tbody tr')].map((row) => row.cells[3].textContent)"
    assert page.run(column) == ["4", "3", "3", "3", "1"]
    page.run("document.querySelectorAll('#view-clusters thead button')[3].click()")
    assert page.run(column) == ["1", "3", "3", "3", "4"]
    assert "Three fit best." in page.run("document.querySelector('#view-clusters').innerText")
    assert page.run("document.querySelector('.curve .score').points.length") == 3
    page.run("document.querySelector('#view-clusters tbody .link').click()")
    assert page.run("page.view.tab + ' ' + page.view.state") == "map user-3"


@in_a_browser
def test_insights_lead_to_states_and_dialogues(opened):
    flow = flow_of(ORDER)
    page = opened(flow, insights=insights(flow))
    assert "\u2068place\u2069: 1 dialogue ends here, 25 % of the times it occurs" in panel(page)
    assert texts_of(page, "#panel summary")[:4] == [
        "Drop-offs 1", "Loops 1", "Forks 2", "Unusual dialogues 4",
    ]  # fmt: skip
    page.run("document.querySelector('.insight .link').click()")
    assert count_of(page, ".node.on") > 1
    page.run("document.querySelector('.insight .chip').click()")
    assert page.run("page.view.dialogue") == "d3"
    short = flow_of({"d1": [HELLO, ASK]})
    page = opened(short, insights=insights(short))  # kinds that do not occur are not there
    assert texts_of(page, "#panel summary") == ["Unusual dialogues 1", "How to read the map ", "Keys "]


def test_insights_are_told_in_sentences_in_which_names_turn_no_direction(tmp_path):
    told = {section.title: [row.text for row in section.rows] for section in insights(flow_of(ORDER))}
    assert told["Loops"] == ["\u2068place\u2069 → \u2068place\u2069: 1 time in 1 dialogue"]
    assert told["Drop-offs"] == ["\u2068place\u2069: 1 dialogue ends here, 25 % of the times it occurs"]
    assert "Start: \u2068greet\u2069 75 %, \u2068complain\u2069 25 %" in told["Forks"]
    assert told["Unusual dialogues"][0].startswith("\u2068d4\u2069: its rarest step is")
    flow = flow_of({"d\u202e1": [("user", "pay\u202eme\n\x1b[31m", "pay")], "d2": [("user", "שלום", "שלום")]})
    found = insights(flow)
    assert found[2].rows[0].text == "Start: \u2068pay\\u202eme \\x1b[31m\u2069 50 %, \u2068שלום\u2069 50 %"
    assert all("\u202e" not in row.text for section in found for row in section.rows)
    states = data_of(flow, tmp_path)[1]["states"]
    assert {state["name"] for state in states} == {"pay\\u202eme \\x1b[31m", "שלום"}


def test_of_many_dialogues_those_that_are_named_and_those_that_show_a_transition_are_kept():
    flow = random_flow(dialogues=400)
    assert kept_dialogues(flow) == list(range(400))
    kept = kept_dialogues(flow, ["d399", "d7"], most=200)
    assert len(kept) == 200
    assert {7, 399} <= set(kept)
    assert kept == kept_dialogues(flow, ["d399", "d7"], most=200) != kept_dialogues(flow, ["d399", "d7"], 1, most=200)
    assert kept_dialogues(flow, ["d5"], characters=1) == [5]
    frequent = {edge for edge, count in flow.graph.edges.items() if count > 40}
    paths = [(START, *flow.trajectories[place], END) for place in kept_dialogues(flow, most=60)]
    assert frequent <= {edge for path in paths for edge in pairwise(path)}


def test_a_dialogue_that_is_too_long_for_the_page_leaves_others_in_it(tmp_path):
    long = [("user", f"state {place % 3}", f"{place} " + "x" * 3000) for place in range(2100)]
    flow = flow_of({"long": long, "d1": [HELLO, ASK], "d2": [HELLO]})
    assert kept_dialogues(flow, ["long"]) == [1, 2]
    flow = flow_of({"one": [("user", "say", "x" * 4_000_000)], "d1": [HELLO, ASK]})
    html, record = data_of(flow, tmp_path)
    assert [dialogue["id"] for dialogue in record["dialogues"]] == ["one", "d1"]
    assert max(map(len, record["texts"])) == 2000
    assert record["texts"][record["dialogues"][0]["texts"][0]] == "x" * 1999 + "…"
    assert len(html) < 300_000


def hundred_thousand():
    """A flow of a hundred states and a hundred thousand utterances, none like another."""
    rng = np.random.default_rng(0)
    words = [f"word{number}" for number in range(2000)]
    texts = [" ".join(rng.choice(words, 10)) for _ in range(10_000)]
    drawn = zip(rng.integers(0, 100, 100_000).tolist(), rng.integers(0, 10_000, 100_000).tolist(), strict=True)
    turns = [("user", f"state {state}", f"{texts[text]} {place}") for place, (state, text) in enumerate(drawn)]
    return flow_of({f"d{first}": turns[first : first + 10] for first in range(0, 100_000, 10)})


@pytest.mark.slow
def test_a_page_of_a_hundred_thousand_utterances_is_under_twelve_megabytes(tmp_path):
    html, record = data_of(hundred_thousand(), tmp_path)
    assert len(html.encode()) < 12_000_000
    assert record["counts"]["utterances"] == 100_000
    assert len(record["dialogues"]) == 2000


@pytest.mark.slow
@in_a_browser
def test_a_page_of_a_hundred_thousand_utterances_opens_and_answers(opened):
    page = opened(hundred_thousand())
    page.run("document.querySelector('#presets').lastChild.click()")
    page.until("document.querySelectorAll('.node.state').length === 100")
    page.run("search.focus(), search.value = 'd19990', search.dispatchEvent(new Event('input'))")
    page.until("found.querySelectorAll('[role=option]').length > 0 && !found.hidden")
    press(page, "Enter")
    assert page.run("page.view.dialogue") == "d19990"
    assert count_of(page, "#panel .said") == 10
