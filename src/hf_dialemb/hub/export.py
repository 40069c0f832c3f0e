"""From a training checkpoint to a folder that strangers load, with or without this package.

AutoModel and SentenceTransformer both load it; every way is tried in a fresh process before the folder appears.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..models import METHODS
from ..models.backbones import load_pretrained, resolve_backbone
from ..models.dialogue import Dialogue
from ..models.encoder import DialogueEncoder, encode
from ..models.errors import InputError

TOLERANCE = 1e-5
"""Largest difference between two ways to load a checkpoint, relative to the largest value of the embeddings."""

_PROBES = [
    [
        {"role": "user", "content": "I need a cheap hotel in the north."},
        {"role": "assistant", "content": "For how many nights?"},
    ],
    [
        {"role": "assistant", "content": "Hello [SEP] [unused10] <s> how can I help?"},
        {"role": "user", "content": "My card was stolen!"},
        {"role": "user", "content": "Please block it."},
        {"role": "assistant", "content": "Done."},
    ],
    [{"role": "user", "content": "Good morning."}],
]

_BLOCK_PACKAGE = """
import sys
class _Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "hf_dialemb":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, _Blocked())
"""

_LOAD_MODEL = """
import json, sys
import numpy as np, torch
from transformers import AutoModel, AutoTokenizer
path, probes, output = sys.argv[1], json.load(open(sys.argv[2])), sys.argv[3]
model = AutoModel.from_pretrained(path, **OPTIONS).eval()
tokenizer = AutoTokenizer.from_pretrained(path, **OPTIONS)
batch = tokenizer.apply_chat_template(probes, return_dict=True, return_tensors="pt", padding=True, truncation=True)
with torch.inference_mode():
    np.save(output, model(**batch).pooler_output.float().numpy())
"""

_LOAD_SENTENCE_TRANSFORMER = """
import json, sys
import numpy as np
from sentence_transformers import SentenceTransformer
path, probes, output = sys.argv[1], json.load(open(sys.argv[2])), sys.argv[3]
np.save(output, SentenceTransformer(path, device="cpu", **OPTIONS).encode(probes))
"""

WAYS = {
    "AutoModel, package imported": "import hf_dialemb\nOPTIONS = {}\n" + _LOAD_MODEL,
    "AutoModel, package absent, trust_remote_code": _BLOCK_PACKAGE
    + "OPTIONS = {'trust_remote_code': True}\n"
    + _LOAD_MODEL,
    "SentenceTransformer, package imported": "import hf_dialemb\nOPTIONS = {}\n" + _LOAD_SENTENCE_TRANSFORMER,
    "SentenceTransformer, package absent, trust_remote_code": _BLOCK_PACKAGE
    + "OPTIONS = {'trust_remote_code': True}\n"
    + _LOAD_SENTENCE_TRANSFORMER,
}
"""Every way that a stranger may load a checkpoint, as a program for a fresh process."""


def load_checkpoint(path: str) -> tuple[DialogueEncoder, Any]:
    """Loads one of our checkpoints with its tokenizer.

    Args:
        path: Folder or Hub id.

    Returns:
        The model and the tokenizer.

    Raises:
        InputError: There is no such checkpoint, it is damaged, or it is not one of ours.
    """
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    folder = resolve_backbone(path)
    config = load_pretrained(AutoConfig, folder)
    if not config.model_type.startswith("dialemb-"):
        raise InputError(f"'{path}' is a {config.model_type} model; expected a checkpoint of {', '.join(METHODS)}")
    model: DialogueEncoder = load_pretrained(AutoModel, folder)
    model.train(False)
    return model, load_pretrained(AutoTokenizer, folder)


def export(source: str, output: Path) -> Iterator[str]:
    """Writes the published form of a checkpoint and verifies it; nothing appears at ``output`` unless all of it holds.

    Args:
        source: Folder or Hub id of a training checkpoint.
        output: A folder that does not exist yet.

    Yields:
        A line per verified way of loading, with its largest difference.

    Raises:
        InputError: ``source`` is not a checkpoint, ``output`` exists, or a way of loading gives other embeddings.
    """
    if output.exists():
        raise InputError(f"--output {output} exists already; choose a new folder or remove it")
    model, tokenizer = load_checkpoint(source)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as temporary:
        folder = Path(temporary) / "checkpoint"
        write_checkpoint(model, tokenizer, folder)
        yield from verify(folder, model, tokenizer)
        folder.replace(output)


def write_checkpoint(model: DialogueEncoder, tokenizer: Any, folder: Path) -> None:  # noqa: ANN401
    """Writes weights, tokenizer, the model's code and the sentence-transformers files.

    Args:
        model: Any of our encoders.
        tokenizer: Its tokenizer.
        folder: Created if absent.
    """
    from transformers.dynamic_module_utils import get_relative_import_files

    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    module = import_module(type(model).__module__)
    file = Path(str(module.__file__))
    for path in [file, *map(Path, get_relative_import_files(str(file)))]:
        shutil.copyfile(path, folder / path.name)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["auto_map"] = {
        "AutoConfig": f"{file.stem}.{type(model.config).__name__}",
        "AutoModel": f"{file.stem}.{type(model).__name__}",
    }
    config["encoder_config"].pop("_name_or_path", None)  # a path of this machine says nothing to anyone else
    _write(folder / "config.json", config)
    pooled = {"method": "forward", "method_output_name": "pooler_output"}
    _write(
        folder / "modules.json",
        [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}],
    )
    _write(
        folder / "sentence_bert_config.json",
        {
            "transformer_task": "feature-extraction",
            "modality_config": {"text": pooled, "message": {**pooled, "format": "flat"}},
            "module_output_name": "sentence_embedding",
            "unpad_inputs": False,
        },
    )
    _write(
        folder / "config_sentence_transformers.json",
        {
            "model_type": "SentenceTransformer",
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )


def verify(folder: Path, model: DialogueEncoder, tokenizer: Any) -> Iterator[str]:  # noqa: ANN401
    """Loads a published folder in fresh processes, in every way that a stranger may, and compares embeddings.

    Args:
        folder: The published form.
        model: What it was made from.
        tokenizer: Its tokenizer.

    Yields:
        A line per way, with the largest difference relative to the largest value.

    Raises:
        InputError: A way fails or differs by more than `TOLERANCE`.
    """
    expected = encode(model, tokenizer, [Dialogue.from_messages(messages) for messages in _PROBES])
    with tempfile.TemporaryDirectory() as temporary:
        probes, result = Path(temporary) / "probes.json", Path(temporary) / "result.npy"
        probes.write_text(json.dumps(_PROBES), encoding="utf-8")
        # The copied code is cached by transformers; a cache of its own cannot hold an older export of the same name.
        environment = {
            **os.environ,
            "HF_MODULES_CACHE": temporary,
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        for way, program in WAYS.items():
            words = [sys.executable, "-c", program, str(folder.resolve()), str(probes), str(result)]
            run = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd=temporary)
            if run.returncode != 0:
                raise InputError(f"The export does not load ({way}): {run.stderr.strip().splitlines()[-1]}")
            difference = float(np.abs(np.load(result) - expected).max() / np.abs(expected).max())
            if not difference <= TOLERANCE:
                raise InputError(f"The export gives other embeddings ({way}): they differ by {difference:.1e}")
            yield f"Verified: {way}: largest difference {difference:.1e}"


def _write(path: Path, record: Any) -> None:  # noqa: ANN401
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
