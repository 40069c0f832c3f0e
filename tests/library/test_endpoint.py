"""An endpoint of embeddings, against a server on this machine.

Order, batches, retries, and every way to fail.
"""

import traceback

import numpy as np
import pytest
from endpoint_server import KEY, embeddings, vector

pytest.importorskip("openai")

from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.encoders import endpoint, load_encoder
from hf_dialemb.encoders.specs import find_encoder, fingerprint
from hf_dialemb.errors import InputError

TALKS = [Dialogue((Turn("user", "a" * length), Turn("assistant", "bb"))) for length in (3, 1, 2)]
SOON = {"Retry-After": "0.01"}


def items(*vectors):
    return {"data": [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]}


def failure(batch_size=32):
    """The sentence that encoding fails with; it never holds the key."""
    with pytest.raises(InputError) as caught:
        load_encoder("api:small", batch_size=batch_size).encode(TALKS)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert str(caught.value).startswith("model 'api:small': http://127.0.0.1:")
    return str(caught.value)


def test_vectors_come_in_batches_and_are_put_in_order(server):
    vectors = load_encoder("api:small", batch_size=2).encode(TALKS)
    np.testing.assert_array_equal(vectors, [vector("aaa bb"), vector("a bb"), vector("aa bb")])
    assert vectors.dtype == np.float32
    assert {(path, key) for path, key, _ in server.requests} == {
        ("/v1/embeddings", f"Bearer {KEY}")
    }
    assert [request["input"] for *_, request in server.requests] == [["aaa bb", "a bb"], ["aa bb"]]
    assert {(request["model"], request["encoding_format"]) for *_, request in server.requests} == {
        ("small", "float")
    }
    vectors = load_encoder("api:small@utterances").encode(TALKS[:1])
    np.testing.assert_array_equal(vectors, [np.mean([vector("aaa"), vector("bb")], axis=0)])


def test_a_busy_server_is_asked_again_and_a_refusal_is_told_without_key(server):
    server.answers = [(429, {"error": {"message": "too many requests"}}, SOON)]
    assert load_encoder("api:small").encode(TALKS).shape == (3, 3)
    assert len(server.requests) == 2
    for status, message, said in (
        (429, f"slow down {KEY}", ["too busy or the quota is used up (status 429"]),
        (
            401,
            f"Incorrect API key provided: {KEY}",
            ["the key was refused (status 401); set OPENAI_API_KEY"],
        ),
        (
            400,
            f"{KEY}: maximum context length is 8192",
            ["got status 400", "maximum context length is 8192"],
        ),
    ):
        server.answers = [(status, {"error": {"message": message}}, SOON)] * 3
        sentence = failure()
        assert all(words in sentence for words in said)


def test_a_malformed_answer_is_one_sentence(server):
    for answer, reason in (
        (b"<html>hello</html>", "of another form"),
        ("<html>hello</html>", "of another form"),
        (b"{}", "of another form"),
        ({**embeddings(["a", "b", "c"]), "data": None}, "of another form"),
        (embeddings(["a", "b"]), "got 2 vectors for 3 texts"),
        ({"data": items([1, 2])["data"] * 3}, "of another form"),
        (items([None], [None], [None]), "of another form"),
        (items([], [], []), "of another form"),
    ):
        server.answers = [
            (200, answer, {"Content-Type": "text/html"} if isinstance(answer, str) else {})
        ]
        assert reason in failure()


def test_vectors_are_of_one_length_and_an_unreachable_server_is_told(server, monkeypatch):
    server.answers = [(200, None), (200, items([1, 2]))]
    assert "got vectors of different lengths" in failure(batch_size=2)
    encoder = load_encoder("api:small", batch_size=8)
    assert encoder.encode_utterances(["a", "b"]).shape == (2, 3)
    server.answers = [(200, items([1, 2]))]  # in a later call
    with pytest.raises(InputError, match="got vectors of different lengths"):
        encoder.encode_utterances(["a"])
    server.answers = [(200, items([0, 0, 0]))]
    with pytest.raises(InputError, match="got a vector of zeros"):
        encoder.encode_utterances(["a"])
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.0)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert (
        "got no answer, expected a server that gives embeddings; check OPENAI_BASE_URL" in failure()
    )


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("OPENAI_API_KEY", "", "OPENAI_API_KEY is not set"),
        ("OPENAI_API_KEY", f"{KEY}\n", "OPENAI_API_KEY holds spaces"),
        ("OPENAI_API_KEY", f"{KEY}é", "characters that no key has"),
        (
            "OPENAI_BASE_URL",
            "localhost:8000",
            "OPENAI_BASE_URL: got something that is not a URL, expected one such as",
        ),
        (
            "OPENAI_BASE_URL",
            "http://user:12/secret@host/v1",
            "OPENAI_BASE_URL: got something that is not a URL",
        ),
        ("the package", "", r"openai is missing; pip install \"hf-dialemb\[api\]\""),
    ],
)
def test_a_wrong_setting_or_a_missing_package_is_told_before_any_work(
    server, monkeypatch, name, value, reason
):
    if name == "the package":
        monkeypatch.setattr(endpoint, "find_spec", lambda name: None)
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=reason) as caught:
        find_encoder("api:small")
    assert KEY not in str(caught.value)
    assert server.requests == []


def test_a_fingerprint_is_of_the_model_and_the_address(server, monkeypatch):
    first = fingerprint("api:small")
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    assert fingerprint("api:small@dialogue") == first
    others = {fingerprint("api:large"), fingerprint("api:small@utterances")}
    monkeypatch.setenv("OPENAI_BASE_URL", "https://user:word@embeddings.example/v1/")
    assert endpoint.endpoint_url() == "https://embeddings.example/v1"
    others.add(fingerprint("api:small"))
    assert len(others | {first}) == 4
    assert server.requests == []
