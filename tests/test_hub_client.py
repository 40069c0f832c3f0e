"""The Hub's client against servers that keep to no protocol, and one that echoes the login."""

import os

import pytest
from endpoint_server import raw_server, serving
from huggingface_hub import close_session, constants, get_hf_file_metadata
from huggingface_hub.utils import get_session

from hf_dialemb.checkpoints import hub_client
from hf_dialemb.checkpoints import pretrained as backbones
from hf_dialemb.errors import InputError

TOKEN = "hf_aSecretWordOfTheHub"


@pytest.fixture
def hub(monkeypatch):
    """A function that takes what OPENAI_BASE_URL names for the Hub."""
    for name, value in (("SILENCE", 0.3), ("_MOST", 100_000), ("_lost", [-99.0])):
        monkeypatch.setattr(hub_client, name, value)
    monkeypatch.setattr(backbones, "_PATIENCE", 0.3)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)

    def point():
        monkeypatch.setattr(constants, "ENDPOINT", os.environ["OPENAI_BASE_URL"].removesuffix("/v1"))
        hub_client.bound_hub_client()
        return constants.ENDPOINT

    close_session()
    yield point
    close_session()


@pytest.mark.parametrize("kind", ["hang", "redirect", "cut", "trickled headers", "endless", "slow", "bomb"])
def test_whatever_a_server_does_it_ends(hub, kind, monkeypatch):
    with raw_server(monkeypatch, kind):
        place = hub()
        with pytest.raises(InputError, match="within reach"):
            backbones.resolve_backbone(f"org/{kind.replace(' ', '-')}")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(hub_client, "_lost", [-99.0])
        told = r"no answer|comes to no end|Expecting|[Rr]edirect|closed|disconnect"
        with pytest.raises(Exception, match="comes to no end" if kind == "bomb" else told):
            get_session().get(f"{place}/v1/embeddings", timeout=None).raise_for_status().json()


@pytest.mark.parametrize("packed", ["br", "gzip, gzip"])
def test_an_answer_is_not_packed_in_ways_that_have_no_bound(hub, monkeypatch, packed):
    with serving(monkeypatch) as running:
        place = hub()
        running.answers.append((200, b"{}", {"Content-Encoding": packed}))
        with pytest.raises(ConnectionError, match=f"packed by '{packed}', expected gzip"):
            get_session().post(f"{place}/v1/x", json={})


def test_a_server_that_echoes_the_login_is_quoted_without_it(hub, monkeypatch):
    with serving(monkeypatch) as running:
        place = hub()
        said = f"{TOKEN} {TOKEN[::-1]}"
        running.answers.append((403, said.encode(), {"X-Error-Message": said}))
        answer = get_session().post(f"{place}/v1/x", json={})
        assert (answer.text, answer.headers["X-Error-Message"]) == ("*** ***", "*** ***")
        with pytest.raises(Exception, match="501"):
            get_hf_file_metadata(f"{place}/x")
