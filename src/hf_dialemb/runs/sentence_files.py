"""The files that make a folder of weights a sentence-transformers model, named as all its versions know them."""

import json
from pathlib import Path
from typing import Any


def write_sentence_files(
    folder: Path,
    modules: dict[str, str],
    transformer: dict[str, Any],
    prompts: dict[str, str] | None = None,
    similarity: str = "cosine",
) -> None:
    """Write ``modules.json``, ``sentence_bert_config.json`` and ``config_sentence_transformers.json``."""
    listed = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{name}"}
        for index, (path, name) in enumerate(modules.items())
    ]
    settings = {"prompts": prompts or {}, "default_prompt_name": None, "similarity_fn_name": similarity}
    write_record(folder / "modules.json", listed)
    write_record(folder / "sentence_bert_config.json", transformer)
    write_record(folder / "config_sentence_transformers.json", {"model_type": "SentenceTransformer", **settings})


def write_files_of_our_own(folder: Path, config: Any) -> None:  # noqa: ANN401 - a MethodConfig
    """Write the files for a model of this package: its own ``forward`` gives the vector of a text or of messages."""
    pooled = {"method": "forward", "method_output_name": "pooler_output"}
    settings = {
        "transformer_task": "feature-extraction",
        "modality_config": {"text": pooled, "message": {**pooled, "format": "flat"}},
        "module_output_name": "sentence_embedding",
        "unpad_inputs": False,
    }
    prompts = {"query": "", "document": "response"} if config.kind == "responses" else {}
    score = getattr(config, "score", "cosine")  # an ensemble's are cosines
    write_sentence_files(folder, {"": "Transformer"}, settings, prompts, score)


def write_record(path: Path, record: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Write JSON as the Hub's own files are written; a published folder appears as a whole, so plainly."""
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
