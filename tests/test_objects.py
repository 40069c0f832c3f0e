"""What Python users have in memory becomes dialogues, or one sentence says what to give."""

import pytest

from hf_dialemb.corpora import load_dialogues
from hf_dialemb.corpora.objects import as_dialogues
from hf_dialemb.corpora.own.hub_dataset import to_dataset
from hf_dialemb.corpora.own.jsonl import write_jsonl
from hf_dialemb.models.dialogue import Dialogue
from hf_dialemb.models.errors import InputError

MESSAGES = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
DIALOGUE = Dialogue.from_messages(MESSAGES, id="a", domains=["greeting"])


def test_every_form_gives_the_same_dialogues(tmp_path):
    pandas = pytest.importorskip("pandas")
    file = tmp_path / "own.jsonl"
    write_jsonl([DIALOGUE], file)
    rows = [{"id": "a", "role": turn["role"], "content": turn["content"], "domain": "greeting"} for turn in MESSAGES]
    whole = {"id": "a", "messages": MESSAGES, "domains": ["greeting"]}
    dataset = to_dataset([DIALOGUE])
    tables = dataset, dataset.to_pandas(), pandas.DataFrame(rows)
    for source in ([DIALOGUE], (DIALOGUE,), [whole], *tables, file, str(file)):
        assert as_dialogues(source) == [DIALOGUE]
    assert as_dialogues([MESSAGES]) == [Dialogue.from_messages(MESSAGES)]


def test_the_columns_and_roles_of_a_table_are_said_as_on_the_command_line():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"call": ["a", "a"], "who": ["Ann", "Bob"], "said": ["Hello", "Hi"]})
    found = as_dialogues(table, columns="id=call,role=who,content=said", roles="Ann=user,Bob=assistant")
    assert [turn.role for turn in found[0].turns] == ["user", "assistant"]


def test_speakers_have_the_roles_that_they_have_in_files(caplog):
    said = {"system": "Be kind.", "Ann": "Hello", "bot": "Hi"}
    chat = [{"role": role, "content": content} for role, content in said.items()]
    assert as_dialogues([chat]) == [Dialogue.from_messages(MESSAGES)]
    assert "dialogues: roles: guessed Ann: user; to confirm or change it, say --roles 'Ann=user'" in caplog.text
    assert as_dialogues([chat], roles="Ann=ignore") == [Dialogue.from_messages(MESSAGES[1:])]


def test_a_corpus_may_carry_its_split():
    assert as_dialogues("sample/dev") == as_dialogues("sample", split="dev") == load_dialogues("sample", None, "dev")


def test_anything_else_is_refused_in_one_sentence():
    for source, said in (
        ("where is my card", "got the text 'where is my card'"),
        (["where is my card"], r"dialogues\[0\]: got the text .* encode_utterances"),
        ([["where", "is"]], r"dialogues\[0\]: got a list of texts"),
        (MESSAGES, r"dialogues\[0\]: got one message"),
        (DIALOGUE, "got one Dialogue, .* put it into a list"),
        ([], "got none"),
        (3, "got one int"),
        ([MESSAGES, [{"role": "user"}]], r"dialogues\[1\]: messages\[0\]"),
        ("no/such.jsonl", "no/such.jsonl"),
    ):
        with pytest.raises(InputError, match=said) as refused:
            as_dialogues(source)
        assert "\n" not in str(refused.value)
