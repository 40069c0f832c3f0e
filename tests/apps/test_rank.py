"""`dialemb rank`.

Pools and contexts, ranked with any ranker, searched, and errors.
"""

import gzip
import json

import numpy as np
import pytest
import torch
from checkpoints import assembled, deep_attention_matching, dual_encoder

from hf_dialemb import Dialogue, InputError, Turn
from hf_dialemb.apps.search import rank
from hf_dialemb.apps.search.rank import rank_file, rank_pool, read_pool
from hf_dialemb.data import write_jsonl
from hf_dialemb.methods.ranker import RankingExample, score_candidates


@pytest.fixture(scope="module")
def dialogues(sample_dialogues):
    return [Dialogue(entry.turns[:3], entry.id) for entry in sample_dialogues[:4]]


@pytest.fixture(scope="module")
def responses(sample_dialogues):
    return list(dict.fromkeys(turn.content for entry in sample_dialogues for turn in entry.turns))[
        :60
    ]


def scores_of(ranker, dialogues, responses):
    """Return the ranker's own scores of all responses, (C, P)."""
    return np.stack(
        score_candidates(
            ranker, [RankingExample(entry.turns, tuple(responses)) for entry in dialogues]
        )
    )


def best(scores, responses, top):
    return [[(responses[place], row[place]) for place in np.argsort(-row)[:top]] for row in scores]


def assert_same(actual, expected):
    pairs = [
        pair for ranked in zip(actual, expected, strict=True) for pair in zip(*ranked, strict=True)
    ]
    assert [text for (text, _), _ in pairs] == [text for _, (text, _) in pairs]
    np.testing.assert_allclose(
        *zip(*((a, b) for (_, a), (_, b) in pairs), strict=True), rtol=1e-4, atol=1e-5
    )


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def test_a_pool_has_each_response_once(tmp_path):
    path = write(tmp_path / "pool.txt", "\ufeffYes .\n\n  \nno\r\n YES  .\nno\nmaybe".encode())
    assert read_pool(path) == ["Yes .", "no", "maybe"]
    assert read_pool(write(tmp_path / "pool.txt.gz", gzip.compress(b"yes\nno\n"))) == ["yes", "no"]


def rank_context(path):
    return list(rank_file("no/such", path, path))


@pytest.mark.parametrize(
    ("read", "content", "sentence"),
    [
        (read_pool, b"", "got no response, expected one on each line"),
        (read_pool, b"good\nb\xff\n", "save the file as UTF-8"),
        (read_pool, None, "cannot be read"),
        (rank_context, [], "got no dialogue"),
        (rank_context, {"turns": [3]}, "got no dialogue"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(tmp_path, read, content, sentence):
    path = tmp_path / "file.json"
    if content is not None:
        write(path, content)
    with pytest.raises(InputError, match=rf"file\.json.*{sentence}"):
        read(path)


def test_scores_are_the_rankers_own(towers, sample_dialogues, dialogues, responses, monkeypatch):
    deep = deep_attention_matching(sample_dialogues)
    monkeypatch.setattr(rank, "_SCORED", 8)
    for ranker in towers:
        expected = best(scores_of(ranker, dialogues, responses), responses, 5)
        assert_same(rank_pool(ranker, dialogues, responses, 5), expected)
    # One without vectors scores the pool piece by piece.
    expected = best(scores_of(deep, dialogues[:2], responses[:20]), responses, 4)
    assert_same(rank_pool(deep, dialogues[:2], responses[:20], 4), expected)


def test_an_ensembles_probabilities_are_those_of_the_whole_pool(
    tower_folders, towers, dialogues, responses
):
    ensemble = assembled(tower_folders)
    whole = list(rank_pool(ensemble, dialogues, responses, len(responses)))
    assert [sum(score for _, score in ranked) for ranked in whole] == pytest.approx(
        [1] * len(dialogues)
    )
    members = [
        torch.from_numpy(scores_of(tower, dialogues, responses)).softmax(-1).numpy()
        for tower in towers
    ]
    assert_same(whole, best(np.mean(members, axis=0), responses, len(responses)))
    assert_same(
        whole, best(np.exp(scores_of(ensemble, dialogues, responses)), responses, len(responses))
    )
    assert_same(rank_pool(ensemble, dialogues, responses, 3), [ranked[:3] for ranked in whole])


def test_a_speaker_without_a_mark_is_an_error(sample_dialogues, responses):
    ranker = dual_encoder(sample_dialogues)
    user, assistant, *_, response = ranker.model.config.marker_ids
    ranker.model.config.marker_ids = [user, assistant, response]
    third = Dialogue((Turn("user", "hello"), Turn("speaker_3", "hi")), "call-3")
    with pytest.raises(
        InputError,
        match="context call-3: got the role speaker_3, expected one of user, assistant, ",
    ):
        next(rank_pool(ranker, [third], responses, 5))


@pytest.fixture
def files(tmp_path, dialogues, responses):
    write_jsonl(dialogues, tmp_path / "contexts.jsonl")
    (tmp_path / "pool.txt").write_text(
        "\n".join(["", *responses, responses[0].upper()]), encoding="utf-8"
    )
    return [
        "--context",
        str(tmp_path / "contexts.jsonl"),
        "--candidates",
        str(tmp_path / "pool.txt"),
    ]


def test_rank_prints(tower_folders, towers, dialogues, responses, files, printed):
    output = printed("rank", "--model", tower_folders[0], *files, "--top", "3")
    assert "60 distinct responses" in output
    expected = best(scores_of(towers[0], dialogues, responses), responses, 3)
    for dialogue, ranked in zip(dialogues, expected, strict=True):
        assert f"\n{dialogue.id}  " in output
        text, score = ranked[0]
        assert f"{1:>6} {score:>12.6g}  {text}" in output


def test_a_wrong_request_is_an_error(tower_folders, tiny_bert, files, refused):
    for words, sentence in (
        (["--top", "0"], "top: got 0, expected a whole number of at least 1"),
        (["--model", tiny_bert], "got a model of type bert, expected a ranker"),
    ):
        assert sentence in refused("rank", "--model", tower_folders[0], *files, *words)
