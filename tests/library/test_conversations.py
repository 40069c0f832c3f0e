"""Conversations that the library reads by itself, as it does where no application is installed."""

import pytest
from talks import to_dataset

from hf_dialemb.data import load_dialogues, loading, write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.errors import InputError

HELLO = (Turn("user", "Hello"), Turn("assistant", "Hi"))
MESSAGES = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
SYSTEM = {"role": "system", "content": "Be kind."}
SHARE_GPT = [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Hi"}]


@pytest.fixture(params=["alone", "beside applications"])
def reader(request, monkeypatch):
    """The library alone, and with whichever applications there are."""
    if request.param == "alone":
        monkeypatch.setattr(loading, "_reader", lambda: None)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    "item",
    [
        Dialogue(HELLO),
        MESSAGES,
        [SYSTEM, *MESSAGES],
        {"messages": MESSAGES},
        {"conversation": MESSAGES},
        {"conversations": SHARE_GPT},
        {"messages": SHARE_GPT, "tools": None},
        {"prompt": "Hello", "completion": "Hi"},
        [
            {"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "image"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
            MESSAGES[1],
        ],
        {"prompt": MESSAGES[:1], "completion": MESSAGES[1:]},
    ],
)
def test_every_shape_of_a_conversation_is_the_same_dialogue(item):
    assert load_dialogues([item]) == [Dialogue(HELLO)]


@pytest.mark.usefixtures("reader")
def test_datasets_are_read_back(sample_dialogues):
    whole = Dialogue(HELLO, "a", ("greeting",), "2026-01-31T14:05:00", {"team": "cards"})
    for form in (lambda table: table, lambda table: table.to_pandas()):
        read = load_dialogues(form(to_dataset([whole, *sample_dialogues])))
        assert read == [whole, *sample_dialogues]
        assert read[0].metadata == {"team": "cards"}


def test_what_only_applications_read_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "_reader", lambda: None)
    remedy = r'; pip install "hf-dialemb\[apps\]"$'
    write_jsonl([Dialogue(HELLO)], tmp_path / "calls.jsonl")
    assert load_dialogues(tmp_path / "calls.jsonl") == [Dialogue(HELLO)]
    for source, options in (
        (str(tmp_path / "calls.csv"), {}),
        (tmp_path, {}),
        (tmp_path / "calls.jsonl", {"roles": "Ann=user"}),
        ([MESSAGES], {"gap": "4h"}),
        ("org/calls", {"roles": "Ann=user"}),
    ):
        with pytest.raises(InputError, match=remedy):
            load_dialogues(source, **options)


@pytest.mark.usefixtures("reader")
def test_anything_else_is_refused_or_left_out(caplog):
    for source, sentence in (
        ("where is my card", "got the text 'where is my card'"),
        (["where is my card"], r"dialogues\[0\]: got the text .* encode_utterances"),
        ([["where", "is"]], r"dialogues\[0\]: got a list of texts"),
        (MESSAGES, r"dialogues\[0\]: got one message"),
        (Dialogue(HELLO), "got one Dialogue, .* put it into a list"),
        ([], "got none"),
        (3, "got one int"),
        ([MESSAGES, 3, 4], "dialogues: 2 of 3 cannot be read"),
    ):
        with pytest.raises(InputError, match=sentence) as refused:
            load_dialogues(source)
        assert "\n" not in str(refused.value)
    assert load_dialogues([*[MESSAGES] * 5, 3]) == [Dialogue(HELLO)] * 5
    assert "left out 1 of 6" in caplog.text
