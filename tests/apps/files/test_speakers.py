"""Facts about who speaks in users' files, and what the reader says of it."""

import pytest
from read_files import read

from hf_dialemb.apps.cli import main
from hf_dialemb.apps.files.roles import RoleMap
from hf_dialemb.dialogue import ROLES
from hf_dialemb.errors import InputError

SEVEN = ["Ann", "Bob", "Ann", "Cem", "Dan", "Eve", "Faye", "Gus"]


def test_speakers_beyond_the_fifth_share_a_role():
    roles = RoleMap()
    assert list(roles.assign(SEVEN).values()) == [*ROLES, ROLES[-1], ROLES[-1]]
    assert roles.sharing == ["faye", "gus"]
    assert RoleMap("Faye=user").assign(["Ann", "Bob", "Cem", "Dan", "Faye"])["Faye"] == "user"


def test_a_group_is_read_and_it_is_told_that_speakers_share_a_role(tmp_path):
    (tmp_path / "group.txt").write_text("".join(f"{name}: Hi all\n" for name in SEVEN))
    (dialogue,), remarks = read(tmp_path / "group.txt", tmp_path)
    assert [turn.name for turn in dialogue.turns] == SEVEN
    assert "gave one role, speaker_5, to all speakers after the fourth" in remarks
    words = ["--model", "dialogue-static", "--input", str(tmp_path / "group.txt")]
    assert main(["embed", *words, "--output", str(tmp_path / "v.parquet")]) == 0
    assert main(["search", *words, "--query", "hi"]) == 0


@pytest.mark.parametrize(
    "calls",
    [
        [("Mia", "Bob"), ("Bob", "Tom"), ("Lea", "Sue"), ("Sue", "Kim")],
        [(f"5f{number}a", f"9c{number}e") for number in range(8)],
    ],
    ids=["roles swap", "every name is new"],
)
def test_roles_of_a_conversation_alone_are_told_as_such(tmp_path, calls):
    rows = "".join(f"{number},{who},Hi\n" for number, call in enumerate(calls) for who in call)
    (tmp_path / "d.csv").write_text("id,speaker,text\n" + rows)
    dialogues, remarks = read(tmp_path / "d.csv", tmp_path)
    assert {dialogue.roles for dialogue in dialogues} == {("user", "assistant")}
    (sentence,) = [line for line in remarks.splitlines() if "roles: " in line]
    assert "roles: given conversation by conversation to " in sentence
    assert "Bob: " not in sentence
    assert "--roles 'Ann=assistant,*=user'" in sentence


def test_nothing_is_guessed_where_reading_is_strict(tmp_path):
    (tmp_path / "d.csv").write_text("id,speaker,text\n1,Ann,Hi\n1,Bob,Ho\n")
    for options in ({}, {"roles": "Ann=user,Bob=assistant", "strict": True}):
        assert len(read(tmp_path / "d.csv", tmp_path, **options)[0]) == 1
    with pytest.raises(
        InputError, match=r"roles: guessed Ann: user; Bob: assistant; .* with --strict nothing"
    ):
        read(tmp_path / "d.csv", tmp_path, strict=True)
