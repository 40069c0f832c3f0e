"""Forms of chats that people have in lists, datasets and files.

Read with applications, and by the library alone.
"""

import json

import pytest
from commands import applications
from datasets import Dataset, DatasetDict, load_dataset
from sentence_transformers import SentenceTransformer
from talks import to_dataset

import hf_dialemb
from hf_dialemb import Dialogue, InputError, Turn, load_dialogues, load_encoder
from hf_dialemb.data import loading, write_jsonl
from hf_dialemb.hub import custom_code, plain_encoder
from hf_dialemb.methods import get_method

TURNS = [("user", "I need a cheap hotel."), ("assistant", "For how many nights?"), ("user", "Two.")]
MESSAGES = [{"role": role, "content": content} for role, content in TURNS]
SHARED = [
    {"from": {"user": "human", "assistant": "gpt"}[role], "value": content}
    for role, content in TURNS
]
ROWS = {
    "messages": {"messages": MESSAGES},
    "conversation": {"conversation": MESSAGES},
    "conversations": {"conversations": MESSAGES},
    "conversations of ShareGPT": {"conversations": SHARED},
}


def turns_of(source) -> list[list[tuple[str, str]]]:
    return [
        [(turn.role, turn.content) for turn in dialogue.turns]
        for dialogue in load_dialogues(source)
    ]


@pytest.mark.habit(
    "rows with messages, conversation or conversations, in any container", "read alike"
)
@applications
@pytest.mark.parametrize("form", ROWS)
def test_rows_are_read_alike_in_a_list_a_dataset_and_files(form, tmp_path):
    rows = [ROWS[form], ROWS[form]]
    dataset, parquet, lines = (
        Dataset.from_list(rows),
        tmp_path / "chats.parquet",
        tmp_path / "chats.jsonl",
    )
    dataset.to_parquet(parquet)
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    loaded = load_dataset(
        "parquet", data_files=str(parquet), split="train", cache_dir=str(tmp_path / "cache")
    )
    for source in (rows, dataset, loaded, parquet, lines):
        assert turns_of(source) == [TURNS, TURNS], type(source)


DIALOGUE = Dialogue(tuple(Turn(*turn) for turn in TURNS))
CALL = {"role": "assistant", "tool_calls": [{"function": {"name": "find", "arguments": "{}"}}]}
RESULT = {"role": "tool", "content": "3 hotels"}
LEFT_OUT = pytest.mark.habit("tool calls whose content is null or absent", "left out with a note")
TWO_TURNS = pytest.mark.habit("rows with prompt and completion", "two turns")


@pytest.fixture(params=["alone", "beside applications"])
def reader(request, monkeypatch):
    """The library alone, and with whichever applications there are."""
    if request.param == "alone":
        monkeypatch.setattr(loading, "_reader", lambda: None)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    "item",
    [
        DIALOGUE,
        MESSAGES,
        [{"role": "system", "content": "Be kind."}, *MESSAGES],
        *ROWS.values(),
        {"messages": SHARED, "tools": None},
        pytest.param(
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "I need"},
                        {"type": "text", "text": "a cheap hotel."},
                        {"type": "image"},
                    ],
                },
                *MESSAGES[1:],
            ],
            marks=pytest.mark.habit("content as a list of parts", "text parts are joined"),
        ),
        pytest.param([MESSAGES[0], CALL, *MESSAGES[1:]], marks=LEFT_OUT),
        pytest.param([MESSAGES[0], {**CALL, "content": None}, *MESSAGES[1:]], marks=LEFT_OUT),
        pytest.param({"prompt": MESSAGES[:1], "completion": MESSAGES[1:]}, marks=TWO_TURNS),
    ],
)
def test_every_shape_of_a_conversation_is_the_same_dialogue(item):
    assert turns_of([item]) == [TURNS]


@pytest.mark.usefixtures("reader")
@TWO_TURNS
def test_a_prompt_and_its_completion_are_two_turns():
    row = {"prompt": TURNS[0][1], "completion": TURNS[1][1]}
    for source in ([row], Dataset.from_list([row])):
        assert turns_of(source) == [TURNS[:2]]


@applications
@LEFT_OUT
def test_calls_of_tools_are_left_out_with_a_note(caplog):
    with caplog.at_level("INFO"):
        assert turns_of([[MESSAGES[0], CALL, RESULT, *MESSAGES[1:]]])[0][-2:] == TURNS[1:]
    assert "tool" in caplog.text


@pytest.mark.habit("a DatasetDict", "asks which split")
def test_a_dictionary_of_datasets_asks_for_a_split():
    splits = DatasetDict(
        {
            "train": Dataset.from_list([ROWS["messages"]]),
            "test": Dataset.from_list([ROWS["messages"]]),
        }
    )
    with pytest.raises(InputError, match=r"train.*test|test.*train"):
        load_dialogues(splits)
    assert len(load_dialogues(splits, split="test")) == 1


@pytest.mark.habit(
    "SentenceTransformer(export).encode of chats with system, tool and list contents",
    "as load_encoder",
)
@pytest.mark.parametrize(
    ("method", "write"), [("dse", plain_encoder.write), ("dial2vec", custom_code.write)]
)
def test_an_export_reads_chats_as_load_encoder_does(method, write, tiny_bert, tmp_path):
    model, tokenizer = get_method(method).model_class.build(tiny_bert, ())
    for part in (model.eval(), tokenizer):
        part.save_pretrained(tmp_path / "run")
    (tmp_path / "export").mkdir()
    write(model, tokenizer, tmp_path / "export")
    system = {"role": "system", "content": "Be kind."}
    calls = [CALL, {**CALL, "content": None}]
    parts = [
        {"type": "text", "text": "Two"},
        {"type": "image"},
        {"type": "text", "text": "nights [SEP], please."},
    ]
    chats = [
        MESSAGES,
        [system, *MESSAGES],
        [MESSAGES[0], *calls, RESULT, *MESSAGES[1:]],
        [*MESSAGES[:2], {"role": "user", "content": parts}],
        [system, {"role": "user", "content": parts}],
    ]
    vectors = SentenceTransformer(str(tmp_path / "export"), device="cpu").encode(chats)
    assert vectors == pytest.approx(load_encoder(tmp_path / "run").encode(chats), abs=1e-5)
    assert vectors[1:3] == pytest.approx(vectors[[0, 0]], abs=1e-6)


@pytest.mark.habit(
    "evaluate, search, find_topics, extract_flow, train on a Dataset of ShareGPT chats",
    "as on dialogues",
)
@applications
@pytest.mark.parametrize("name", ["evaluate", "search", "find_topics", "extract_flow", "train"])
def test_every_function_takes_the_forms_of_load_dialogues(name, sample_dialogues, tmp_path):
    chosen, names = sample_dialogues[:60], {"user": "human", "assistant": "gpt"}
    shared = [
        [{"from": names[turn.role], "value": turn.content} for turn in item.turns]
        for item in chosen
    ]
    pairs = zip(chosen, shared, strict=True)
    chats = [
        {"id": item.id, "domains": item.domains, "conversations": turns} for item, turns in pairs
    ]
    encoder = load_encoder("dialogue-static")
    call = {
        "evaluate": lambda source: hf_dialemb.evaluate(
            encoder, source, tasks=["domains"], seeds=1
        ).results[0],
        "search": lambda source: hf_dialemb.search(encoder, source, "a hotel"),
        "find_topics": lambda source: hf_dialemb.find_topics(source, encoder).labels.tolist(),
        "extract_flow": lambda source: (
            hf_dialemb.extract_flow(source, encoder, clusters=5).flow.trajectories
        ),
        "train": lambda source: (
            hf_dialemb.train(
                "dual_encoder",
                source,
                output_dir=tmp_path / type(source).__name__,
                max_steps=1,
                hidden_size=8,
            )
            .encoder()
            .encode(source)
            .tolist()
        ),
    }[name]
    assert call(Dataset.from_list(chats)) == call(chosen)


@pytest.mark.usefixtures("reader")
def test_datasets_are_read_back(sample_dialogues):
    whole = Dialogue(DIALOGUE.turns, "a", ("greeting",), "2026-01-31T14:05:00", {"team": "cards"})
    for form in (lambda table: table, lambda table: table.to_pandas()):
        read = load_dialogues(form(to_dataset([whole, *sample_dialogues])))
        assert read == [whole, *sample_dialogues]
        assert read[0].metadata == {"team": "cards"}


def test_what_only_applications_read_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "_reader", lambda: None)
    remedy = r'; pip install "hf-dialemb\[apps\]"$'
    write_jsonl([DIALOGUE], tmp_path / "calls.jsonl")
    assert load_dialogues(tmp_path / "calls.jsonl") == [DIALOGUE]
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
        (DIALOGUE, "got one Dialogue, .* put it into a list"),
        ([], "got none"),
        (3, "got one int"),
        ([MESSAGES, 3, 4], "dialogues: 2 of 3 cannot be read"),
    ):
        with pytest.raises(InputError, match=sentence) as refused:
            load_dialogues(source)
        assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match=r"^split: got 'test', but .* has no splits and is read"):
        load_dialogues([MESSAGES], split="test")
    assert load_dialogues([*[MESSAGES] * 5, 3]) == [DIALOGUE] * 5
    assert "left out 1 of 6" in caplog.text
