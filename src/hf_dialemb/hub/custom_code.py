"""The published form of dialogue encoders and rankers.

Weights with a configuration and a modelling file beside them.

AutoModel and SentenceTransformer load it with this package imported, or with ``trust_remote_code``.
A list of messages is a dialogue, or a ranker's context. A response is a list of one message of the
role ``response``; for sentence-transformers' ``encode_document`` it is a text, whose prompt
reaches the chat template as a system message. A ranker itself cuts long contexts at their start and
long responses at their end. Its tokenizer must not cut: a response would lose its marker and read
as a context.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel
from transformers.dynamic_module_utils import custom_object_save

from ..dialogue import Dialogue
from ..methods.backbone_model import published_class
from ..methods.encoding import DialogueEncoder, encode
from ..methods.layout import UNLIMITED, special_texts
from ..methods.ranker import Ranker, encode_contexts, encode_responses, loaded_ranker
from ..storage.run_folder import write_files_of_our_own, write_record
from .published_folder import (
    ARGUMENTS,
    WITHOUT_PACKAGE,
    Messages,
    PublishedFolder,
    Vectors,
    messages,
)

_PROGRAM = """
model = AutoModel.from_pretrained(path, **OPTIONS).eval()
tokenizer = AutoTokenizer.from_pretrained(path, **OPTIONS)
options = {"return_dict": True, "return_tensors": "pt", "padding": True, "truncation": True}
vectors = {}
for kind, (messages, _, _) in probes.items():
    with torch.inference_mode():
        output = model(**tokenizer.apply_chat_template(messages, **options))
    vectors["AutoModel" + kind] = output.pooler_output.float().numpy()
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(path, device="cpu", **OPTIONS)
for kind, (_, inputs, encode) in probes.items():
    vectors["SentenceTransformer" + kind] = getattr(model, encode)(inputs)
np.savez(output_path, **vectors)
"""

IMPORTED = "package imported"

WAYS = {
    IMPORTED: "import hf_dialemb\nOPTIONS = {}" + ARGUMENTS + _PROGRAM,
    "package absent, trust_remote_code": (
        WITHOUT_PACKAGE + "OPTIONS = {'trust_remote_code': True}" + ARGUMENTS + _PROGRAM
    ),
}
"""The programs that load a folder as strangers may."""


def write(model: PreTrainedModel, tokenizer: Any, folder: Path) -> None:
    """Write weights, tokenizer, the model's code and the sentence-transformers files."""
    if isinstance(model, Ranker):
        model.check_embeds()
        tokenizer.model_max_length = UNLIMITED
        tokenizer.truncation_side = "left"
        tokenizer.init_kwargs["truncation_side"] = "left"  # the file holds what is in both
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    published = published_class(type(model))
    custom_object_save(published, folder)
    text = (folder / PublishedFolder.CONFIG).read_text(encoding="utf-8")
    config = json.loads(text, object_hook=_without_place)
    classes = {"AutoConfig": published.config_class, "AutoModel": published}
    config["auto_map"] = {
        name: f"{kind.__module__.split('.')[-1]}.{kind.__name__}" for name, kind in classes.items()
    }
    write_record(folder / PublishedFolder.CONFIG, config)
    write_files_of_our_own(folder, model.config)


def _without_place(config: dict[str, Any]) -> dict[str, Any]:
    """Leave out the path of a backbone, which means nothing on another machine."""
    return {name: value for name, value in config.items() if name != "_name_or_path"}


def probes(
    model: DialogueEncoder | Ranker, tokenizer: Any
) -> tuple[dict[str, Any], dict[str, Vectors]]:
    """Return the probe inputs of the programs, and the model's own vectors by their names."""
    control = [f"Hello {special} there" for special in special_texts(tokenizer)[:10]]
    if isinstance(model, DialogueEncoder):
        dialogues = _conversations(tokenizer, control, model.config.max_tokens)
        inputs: dict[str, Any] = {"": (dialogues, dialogues, "encode")}
        expected = {"": encode(model, tokenizer, list(map(Dialogue.from_messages, dialogues)))}
    else:
        contexts = _conversations(tokenizer, control, model.config.max_context_tokens)
        long = _words(tokenizer, model.config.max_response_tokens + 30)
        responses = ["Good morning.", "", " Größe?  40,\tbitte\n", long, *control]
        as_messages = [messages(("response", text)) for text in responses]
        ranker = loaded_ranker(model, tokenizer)
        inputs = {
            ", contexts": (contexts, contexts, "encode_query"),
            ", responses": (as_messages, responses, "encode_document"),
        }
        turns = [Dialogue.from_messages(context).turns for context in contexts]
        expected = {
            ", contexts": encode_contexts(ranker, turns),
            ", responses": encode_responses(ranker, responses),
        }
    return inputs, {
        library + kind: vectors
        for library in ("AutoModel", "SentenceTransformer")
        for kind, vectors in expected.items()
    }


def _conversations(tokenizer: Any, control: list[str], limit: int) -> list[Messages]:
    """Return usual conversations, some over a number of tokens, some with control tokens."""
    long = _words(tokenizer, limit + 30)
    return [
        messages(
            ("user", " I need a cheap hotel in the north. "), ("assistant", "For how many nights?")
        ),
        messages(
            ("assistant", "Größe?  40,\tbitte\n"),
            ("user", "My card was stolen!"),
            ("user", "Please block it."),
        ),
        messages(("user", "Good morning."), ("assistant", long)),
        messages(("user", long), ("assistant", "Which card?"), ("user", long[: len(long) // 2])),
        *(messages(("user", text), ("assistant", text)) for text in control),
    ]


def _words(tokenizer: Any, count: int) -> str:
    words = sorted(token for token in tokenizer.get_vocab() if token.isascii() and token.isalpha())
    return " ".join(np.random.default_rng(0).choice(words, count))
