"""The published form of dialogue encoders: weights with a configuration and a modelling file beside them.

AutoModel and SentenceTransformer load it with this package imported, or with ``trust_remote_code``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel
from transformers.dynamic_module_utils import custom_object_save

from ...dialogue import Dialogue
from ...methods.backbone_model import published_class
from ...methods.encoder import DialogueEncoder, encode, set_template
from ...runs.folder import write_files_of_our_own, write_record
from ..published_folder import PublishedFolder
from .precision import AS_TRAINED, WeightForm
from .verification import ENVIRONMENTS, compare, messages, run_afresh

TOLERANCE = 1e-5  # largest difference between two ways to load a checkpoint, relative to the embeddings' largest value

_CONTROL = ("assistant", "Hello [SEP] [unused10] <s> how can I help?")
_PROBES = [
    messages(("user", "I need a cheap hotel in the north."), ("assistant", "For how many nights?")),
    messages(_CONTROL, ("user", "My card was stolen!"), ("user", "Please block it."), ("assistant", "Done.")),
    messages(("user", "Good morning.")),
]

_PROGRAM = """
import torch
from transformers import AutoModel, AutoTokenizer
model = AutoModel.from_pretrained(path, **OPTIONS).eval()
tokenizer = AutoTokenizer.from_pretrained(path, **OPTIONS)
batch = tokenizer.apply_chat_template(probes, return_dict=True, return_tensors="pt", padding=True, truncation=True)
with torch.inference_mode():
    vectors = {"AutoModel": model(**batch).pooler_output.float().numpy()}
from sentence_transformers import SentenceTransformer
vectors["SentenceTransformer"] = SentenceTransformer(path, device="cpu", **OPTIONS).encode(probes)
np.savez(output, **vectors)
"""

WAYS = {where: beginning + _PROGRAM for where, beginning in ENVIRONMENTS.items()}  # in which strangers may load it


def write(model: PreTrainedModel, tokenizer: Any, folder: Path, weights: WeightForm = AS_TRAINED) -> None:  # noqa: ANN401
    """Write weights, tokenizer, the model's code and the sentence-transformers files."""
    if isinstance(model, DialogueEncoder):  # checkpoints of older versions have another template, and a limit
        set_template(tokenizer, model.config)
    weights.applied(model).save_pretrained(folder, **weights.save_options())
    tokenizer.save_pretrained(folder)
    published = published_class(type(model))
    custom_object_save(published, folder)
    config = PublishedFolder(folder).record(PublishedFolder.CONFIG)
    classes = {"AutoConfig": published.config_class, "AutoModel": published}
    config["auto_map"] = {name: f"{kind.__module__.split('.')[-1]}.{kind.__name__}" for name, kind in classes.items()}
    _forget_places(config)
    write_record(folder / PublishedFolder.CONFIG, config)
    write_files_of_our_own(folder, model.config)


def _forget_places(config: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Remove the paths of backbones, which mean nothing on another machine."""
    if isinstance(config, dict):
        config.pop("_name_or_path", None)
    for part in config.values() if isinstance(config, dict) else config if isinstance(config, list) else ():
        _forget_places(part)


def verify(folder: Path, model: DialogueEncoder, tokenizer: Any, tolerance: float = TOLERANCE) -> Iterator[str]:  # noqa: ANN401
    """Load a published folder in fresh processes, in every way of `WAYS`, and compare embeddings."""
    turns = _PROBES[0] * (1 + model.config.max_tokens // 10)  # more than fit, of several lengths
    probes = [*_PROBES, [{**turn, "content": f"{place}. {turn['content']}"} for place, turn in enumerate(turns)]]
    expected = encode(model, tokenizer, [Dialogue.from_messages(probe) for probe in probes])
    for way, program in WAYS.items():
        for name, vectors in run_afresh(way, program, folder, probes).items():
            yield compare(f"{name}, {way}", vectors, expected, tolerance)
