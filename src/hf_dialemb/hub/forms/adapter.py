"""The LoRA form of a merged encoder, in peft's files: a megabyte beside a backbone that people have already."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save_file

from ...methods.merged import Factors
from ...runs.sentence_files import write_record
from ..published_folder import PublishedFolder

FOLDER = "adapter"  # where it lies in a merged encoder's folder


def write_adapter(folder: Path, adapter: Mapping[str, Factors], backbone: str) -> None:
    """Writes ``adapter_model.safetensors`` in bfloat16, and ``adapter_config.json``; the folder must exist.

    The weights are of `AutoModel`'s classes, so that ``model.load_adapter(folder)`` finds their places.
    """
    tensors = {
        f"base_model.model.{name}.lora_{letter}.weight": matrix.bfloat16().contiguous()
        for name, (down, up) in adapter.items()
        for letter, matrix in (("A", down), ("B", up))
    }
    save_file(tensors, folder / PublishedFolder.ADAPTER_WEIGHTS, metadata={"format": "pt"})
    rank = max(len(down) for down, _ in adapter.values())
    record = {
        "peft_type": "LORA",
        "task_type": "FEATURE_EXTRACTION",
        "base_model_name_or_path": backbone,
        "r": rank,
        "lora_alpha": rank,  # a factor of one
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted(adapter),  # whole names: "dense" would find the pooler too
        "inference_mode": True,
    }
    write_record(folder / PublishedFolder.ADAPTER_CONFIG, record)
