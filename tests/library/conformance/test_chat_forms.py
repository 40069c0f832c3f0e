"""Forms of chats that people have in lists, datasets and files."""

import json

import pytest
from commands import applications
from datasets import Dataset, DatasetDict, load_dataset
from sentence_transformers import SentenceTransformer

import hf_dialemb
from hf_dialemb import load_dialogues, load_encoder
from hf_dialemb.errors import InputError
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


@applications
@pytest.mark.habit("tool calls whose content is null or absent", "left out with a note")
@pytest.mark.parametrize("call", [{"content": None}, {}])
def test_calls_of_tools_are_left_out_with_a_note(call, caplog):
    calling = {
        "role": "assistant",
        "tool_calls": [{"function": {"name": "find", "arguments": "{}"}}],
        **call,
    }
    chat = [MESSAGES[0], calling, {"role": "tool", "content": "3 hotels"}, *MESSAGES[1:]]
    with caplog.at_level("INFO"):
        assert [turn for turn in turns_of([chat])[0] if turn[0] != "tool"] == TURNS
    assert "tool" in caplog.text


@pytest.mark.habit("content as a list of parts", "text parts are joined")
def test_text_parts_are_joined():
    parts = [{"type": "text", "text": "I need"}, {"type": "text", "text": "a cheap hotel."}]
    assert (
        turns_of([[{"role": "user", "content": parts}, *MESSAGES[1:]]])[0][0][1].split()
        == TURNS[0][1].split()
    )


@pytest.mark.habit("rows with prompt and completion", "two turns")
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_prompt_and_its_completion_are_two_turns(wrapped):
    row = {"prompt": TURNS[0][1], "completion": TURNS[1][1]}
    if wrapped:
        row = {"prompt": [MESSAGES[0]], "completion": [MESSAGES[1]]}
    for source in ([row], Dataset.from_list([row])):
        assert turns_of(source) == [TURNS[:2]]


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
    system, result = (
        {"role": "system", "content": "Be kind."},
        {"role": "tool", "content": "3 hotels"},
    )
    calls = [
        {"role": "assistant", "tool_calls": [{"function": {"name": "find", "arguments": "{}"}}]}
        for _ in range(2)
    ]
    calls[1]["content"] = None
    parts = [
        {"type": "text", "text": "Two"},
        {"type": "image"},
        {"type": "text", "text": "nights [SEP], please."},
    ]
    chats = [
        MESSAGES,
        [system, *MESSAGES],
        [MESSAGES[0], *calls, result, *MESSAGES[1:]],
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
