"""The Space: what it reads and refuses, what it writes, and the page itself in a real browser."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import checkpoints
import pytest
from browser import BROWSER, Browser, gradio_page

from hf_dialemb import Dialogue, InputError, Turn

pytestmark = pytest.mark.slow

SPACE = Path(__file__).parents[1] / "examples" / "space"
HOSTILE = "<img src=x onerror=\"document.title='taken'\"> ${document.title='taken'} {{1+1}}"


@pytest.fixture(scope="module", autouse=True)
def modules():
    """Lets the files of the Space import each other, as they do beside each other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SPACE))
        yield
        for name in ("reading", "comparing", "rendering"):
            sys.modules.pop(name, None)


@pytest.fixture
def read():
    from reading import read

    return read


def test_transcripts_and_json_lines_are_read(read, tmp_path):
    text = "Customer: A room.\nAgent: For two?\nAnd when?\n\n  ---  \nuser: A taxi.\n---\n"
    first, second = read(text, None)
    assert first.turns == (Turn("user", "A room."), Turn("assistant", "For two? And when?"))
    assert second == Dialogue((Turn("user", "A taxi."),), "2")
    line = json.dumps({"id": "call-17", "messages": first.to_messages()})
    assert read(f" {line}\n\n", None)[0].id == "call-17"
    (tmp_path / "calls.JSONL").write_text(f"{line}\n")
    *both, third = read(text, str(tmp_path / "calls.JSONL"))
    assert (both, third.id) == ([first, second], "call-17")


@pytest.mark.parametrize(
    ("pasted", "sentence"),
    [
        ("user: A\n---\n\nhello", "Pasted text, line 4: got 'hello', expected 'SPEAKER: text'"),
        (
            "user: A\n---\nuser:",
            r"Pasted text: got no dialogue \(left out a turn without text\), "
            r"expected lines",
        ),
        (
            '{"messages": []}',
            r"Pasted text: got no dialogue \(left out a record in which nobody says "
            r"anything\)",
        ),
        ("\n".join(["user: a"] * 201), "Dialogue 1: got 201 turns, expected at most 200"),
        ("user: " + "a" * 1_000_000, "Pasted text: got more than 1,000,000 bytes"),
        (None, r"^calls.pdf: expected a .jsonl or .txt file"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_sentence(read, pasted, sentence):
    with pytest.raises(InputError, match=sentence):
        read(pasted, "calls.pdf" if pasted is None else None)


@pytest.mark.skipif(find_spec("plotly") is None, reason="plotly is not installed")
def test_what_visitors_write_is_escaped(tiny_checkpoint):
    import rendering
    from comparing import Comparer

    comparer = Comparer(str(tiny_checkpoint))
    dialogues = [
        Dialogue((Turn("user", HOSTILE), Turn("assistant", HOSTILE)), name)
        for name in (HOSTILE, "2")
    ]
    comparison = comparer.compare(dialogues, with_examples=False)
    assert comparison.points.shape == (2, 2)
    traces = json.loads(rendering.picture(comparison, 0).to_json())["data"]
    html = rendering.similar(comparison, 1) + rendering.replies([(HOSTILE, 1.0)], "Score")
    html += rendering.note(HOSTILE)
    for shown in (html, *(point for trace in traces for point in trace["text"])):
        assert "<img" not in shown
        assert "&lt;img" in shown


@pytest.fixture(scope="module")
def address(sample_dialogues, tmp_path_factory):
    """The Space, started as its README says, with a ranker that has vectors as well."""
    if not (find_spec("gradio") and find_spec("plotly") and BROWSER):
        pytest.skip("gradio, plotly or a browser is not installed")
    folder = tmp_path_factory.mktemp("space")
    ranker = checkpoints.save(checkpoints.dual_encoder(sample_dialogues), folder / "ranker")
    places = {"DIALEMB_MODEL": ranker, "GRADIO_TEMP_DIR": str(folder / "uploads")}
    with gradio_page(SPACE / "app.py", **places) as address:
        yield address


def press(page, name):
    page.run(f"document.querySelector('#{name}').click()")


def test_the_page_in_a_browser(address, tmp_path):
    with Browser(tmp_path / "profile") as page:
        page.size(1280, 900)
        page.open(f"{address}/?__theme=light")
        page.until(
            "document.querySelector('#compare') && document.querySelector('#pasted textarea')"
        )
        assert not page.run("document.fonts.size"), "no font comes from elsewhere"
        press(page, "example")
        page.until("document.querySelector('#pasted textarea').value.includes('---')")
        page.run("document.querySelector('#with-examples input').click()")  # the map by PCA
        text = (
            f"user: A room {HOSTILE}\nassistant: For two?\n---\nuser: My "
            "<b>parcel</b>\nassistant: Where?"
        )
        page.run(f"""{{
          const field = document.querySelector('#pasted textarea')
          const {{set}} = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value')
          set.call(field, {json.dumps(text)})
          field.dispatchEvent(new Event('input', {{bubbles: true}}))
        }}""")
        press(page, "compare")
        page.until("document.querySelector('#similar table')")
        page.until("document.querySelectorAll('#map .js-plotly-plot .point').length == 2")
        assert page.run("document.querySelector('#status').innerText").startswith(
            "Read 2 dialogues with 4 turns."
        )
        assert "My <b>parcel</b>" in page.run("document.querySelector('#similar').innerText")
        for width in (1280, 390):
            page.size(width, 900)
            page.until(f"innerWidth == {width} && document.documentElement.scrollWidth <= {width}")
        page.run("document.body.classList.add('dark')")
        page.until(
            "getComputedStyle(document.querySelector('#similar td')).color.match(/\\d+/)[0] > 200"
        )

        press(page, "rank")
        page.until("document.querySelectorAll('#replies tbody tr').length == 5")

        bad = tmp_path / "calls.jsonl"
        bad.write_text(
            '{"messages": [{"role": "user", "content": "a"}]}\n{"messages": 3}\n', encoding="utf-8"
        )
        page.choose_file("#upload input[type=file]", bad)
        page.until("document.querySelector('#upload').innerText.includes('calls')")
        press(page, "compare")
        told = page.until("document.querySelector('#status .problem')?.innerText")
        assert told.startswith(
            "calls.jsonl, line 2: field messages: got int, expected a list of messages"
        )
        assert "\n" not in told
        page.until("!document.querySelector('#similar')?.offsetParent")
        assert page.run("document.title") == "Compare dialogues", "nothing that was written may run"
        assert page.problems == []
