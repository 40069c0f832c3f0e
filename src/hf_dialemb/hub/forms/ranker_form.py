"""The published form of rankers that embed: weights with a configuration and a modelling file beside them.

A list of messages is a context. A response is a list of one message of the role ``response``. In sentence-transformers
it is a text for ``encode_document``, whose prompt reaches the chat template as a system message. The model itself cuts
long contexts at their start and long responses at their end, so the tokenizer must not cut: a response would lose its
marker and read as a context.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...dialogue import Dialogue
from ...errors import InputError
from ...methods import method_of
from ...methods.layout import UNLIMITED
from ...methods.markers import ranking_template, special_texts
from ...methods.ranker import Ranker
from ...methods.ranking import LoadedRanker, encode_contexts, encode_responses
from . import custom_encoder
from .precision import AS_TRAINED, WeightForm
from .verification import ENVIRONMENTS, compare, messages, run_afresh

TOLERANCE = 1e-6  # largest difference from the vectors of the checkpoint, relative to their largest value

_PROGRAM = """
import torch
from transformers import AutoModel, AutoTokenizer
contexts, responses = probes["contexts"], probes["responses"]
model = AutoModel.from_pretrained(path, **OPTIONS).eval()
tokenizer = AutoTokenizer.from_pretrained(path, **OPTIONS)
messages = contexts + [[{"role": "response", "content": text}] for text in responses]
batch = tokenizer.apply_chat_template(messages, return_dict=True, return_tensors="pt", padding=True, truncation=True)
with torch.inference_mode():
    found = model(**batch).pooler_output.float().numpy()
vectors = {"AutoModel, contexts": found[:len(contexts)], "AutoModel, responses": found[len(contexts):]}
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(path, device="cpu", **OPTIONS)
vectors["SentenceTransformer, contexts"] = model.encode_query(contexts)
vectors["SentenceTransformer, responses"] = model.encode_document(responses)
np.savez(output, **vectors)
"""

WAYS = {where: beginning + _PROGRAM for where, beginning in ENVIRONMENTS.items()}  # in which strangers may load it


def write(model: Ranker, tokenizer: Any, folder: Path, weights: WeightForm = AS_TRAINED) -> None:  # noqa: ANN401
    """Write weights, tokenizer, the model's code and the sentence-transformers files."""
    if not model.embeds:
        raise InputError(
            f"got a {model.config.model_type.removeprefix('dialemb-')} ranker, which scores a context and a response "
            "together, expected a model that embeds; rank candidates with its checkpoint as it is"
        )
    tokenizer.chat_template = ranking_template(tokenizer, model.config.marker_ids)
    tokenizer.model_max_length = UNLIMITED
    tokenizer.truncation_side = tokenizer.init_kwargs["truncation_side"] = "left"  # the file holds what is in both
    custom_encoder.write(model, tokenizer, folder, weights)


def verify(folder: Path, model: Ranker, tokenizer: Any, tolerance: float = TOLERANCE) -> Iterator[str]:  # noqa: ANN401
    """Load a published folder in fresh processes, in every way of `WAYS`, and compare embeddings."""
    probes, method = _probes(model, tokenizer), method_of(model)
    assert method is not None, "models of other makers are refused before"
    ranker = LoadedRanker(model, tokenizer, method)
    turns = [Dialogue.from_messages(context).turns for context in probes["contexts"]]
    expected = {"contexts": encode_contexts(ranker, turns), "responses": encode_responses(ranker, probes["responses"])}
    for way, program in WAYS.items():
        for name, vectors in run_afresh(way, program, folder, probes).items():
            yield compare(f"{name}, {way}", vectors, expected[name.split(", ")[1]], tolerance)


def _probes(model: Ranker, tokenizer: Any) -> dict[str, list[Any]]:  # noqa: ANN401
    control = [f"Hello {special} there" for special in special_texts(tokenizer)[:10]]
    words = sorted(token for token in tokenizer.get_vocab() if token.isascii() and token.isalpha())
    generator = np.random.default_rng(0)
    context, response = (
        " ".join(generator.choice(words, limit + 30))
        for limit in (model.config.max_context_tokens, model.config.max_response_tokens)
    )
    contexts = [
        messages(("user", " I need a cheap hotel in the north. "), ("assistant", "For how many nights?")),
        messages(("assistant", "Größe?  40,\tbitte\n"), ("user", "My card was stolen!"), ("user", "Please block it.")),
        messages(("user", "Good morning."), ("assistant", context)),
        messages(("user", context), ("assistant", "Which card?"), ("user", context[: len(context) // 2])),
        *(messages(("user", text), ("assistant", text)) for text in control),
    ]
    return {"contexts": contexts, "responses": ["Good morning.", "", " Größe?  40,\tbitte\n", response, *control]}
