"""The files that make a folder of weights a sentence-transformers model, named as all its versions know them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_sentence_files(folder: Path, modules: dict[str, str], transformer: dict[str, Any]) -> None:
    """Writes ``modules.json``, ``sentence_bert_config.json`` and ``config_sentence_transformers.json``.

    Args:
        folder: The published form.
        modules: Subfolder to stock class, in order; classes of other packages would need ``trust_remote_code``.
        transformer: Settings of the first module.
    """
    listed = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{name}"}
        for index, (path, name) in enumerate(modules.items())
    ]
    write_record(folder / "modules.json", listed)
    write_record(folder / "sentence_bert_config.json", transformer)
    write_record(
        folder / "config_sentence_transformers.json",
        {
            "model_type": "SentenceTransformer",
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )


def write_record(path: Path, record: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Writes JSON as the Hub's own files are written; a published folder appears as a whole, so plainly."""
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
