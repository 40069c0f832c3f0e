"""Merge trainings of one backbone: python training_scripts/merge.py --help.

``theta = theta_0 + sum_i w_i (theta_i - theta_0)``: task arithmetic (Ilharco et al., ICLR 2023,
arXiv:2212.04089). The sum of each linear layer is cut to its first singular values, a LoRA adapter
of peft in the folder ``adapter``; all other weights stay the backbone's.
"""

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn

from hf_dialemb.evaluation.results.contamination import sets_behind
from hf_dialemb.methods.backbone_model import load_backbone
from hf_dialemb.methods.dse import DSEModel
from hf_dialemb.storage.files import appearing_whole, write_json_atomically
from hf_dialemb.storage.pretrained import MINILM
from hf_dialemb.storage.run_folder import RunFolder, read_object, write_files_of_our_own
from hf_dialemb.training.training_record import trainings_behind

ADAPTER = "adapter"
MAX_TOKENS = 512
SOURCES = ".sources.json"
"""The end of the file beside pairs that says where they are from."""


@torch.no_grad()
def adapted(encoder: nn.Module, backbone: str, parts: Mapping[str, float], rank: int) -> PeftModel:
    """Add to each linear layer what the parts moved of it, cut to a rank, in bfloat16.

    Args:
        encoder: The model that all parts started from.
        backbone: Its folder or Hub id.
        parts: The weight of each training, by its folder or Hub id.
        rank: How many singular values stay of each linear layer's sum.
    """
    layers = {name: part for name, part in encoder.named_modules() if isinstance(part, nn.Linear)}
    total = {name: torch.zeros_like(layer.weight) for name, layer in layers.items()}
    for path, weight in parts.items():
        end = load_backbone(path, None).encoder.state_dict()
        for name, layer in layers.items():
            total[name] += weight * (end[f"{name}.weight"] - layer.weight)
    # layers that were frozen would be stored as zeros
    changed = [name for name in layers if total[name].any()]
    config = LoraConfig(
        r=rank, lora_alpha=rank, target_modules=changed, task_type="FEATURE_EXTRACTION"
    )
    model = get_peft_model(encoder, config)
    config.base_model_name_or_path = MINILM if backbone == MINILM.split("/")[1] else backbone
    for name in changed:
        left, values, right = torch.linalg.svd(total[name], full_matrices=False)
        root = values[:rank].sqrt()
        layer = model.get_submodule(f"base_model.model.{name}")
        layer.lora_A["default"].weight.zero_()[: len(root)] = root[:, None] * right[:rank]
        layer.lora_B["default"].weight.zero_()[:, : len(root)] = left[:, :rank] * root
        layer.lora_A.bfloat16()
        layer.lora_B.bfloat16()
    return model


def merge(backbone: str, parts: Mapping[str, float], rank: int, output: Path) -> RunFolder:
    """Write a merged encoder of texts with its adapter and the record of its trainings."""
    started = time.time()
    with appearing_whole(output) as folder:
        encoder, tokenizer = merged_model(backbone, parts, rank, folder / ADAPTER)
        encoder.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        write_files_of_our_own(folder, encoder.config)
        learnt = {"/".join(filter(None, names)) for path in parts for names in sets_behind(path)}
        further: dict[str, list[str]] = {}
        for pairs in [name for name in learnt if Path(name).with_suffix(SOURCES).is_file()]:
            sources = read_object(Path(pairs).with_suffix(SOURCES), "run pairs.py again")
            learnt |= sources["pairs"].keys()
            learnt.discard(pairs)
            further |= sources["licences"]
        settings = {
            "method": "merged",
            "backbone": backbone,
            "rank": rank,
            "max_tokens": MAX_TOKENS,
            "parts": dict(parts),
            "corpus": sorted(learnt - further.keys()),
            "licences": further,
            "train_split": "all",
            "checkpoint_selection": "last",
            "seed": 0,
        }
        report = {
            "seconds": time.time() - started,
            "trainings": [record for path in parts for record in trainings_behind(Path(path))],
        }
        write_json_atomically(RunFolder(folder).settings_file, settings)
        write_json_atomically(RunFolder(folder).report_file, report)
    return RunFolder(output)


def merged_model(
    backbone: str, parts: Mapping[str, float], rank: int, adapter: Path | None = None
) -> tuple[DSEModel, Any]:
    """Merge trainings to an encoder of texts without a contrastive head, and its tokenizer.

    The folder ``adapter`` is written if it is given.
    """
    model, tokenizer = DSEModel.from_backbone(
        backbone, projection_size=None, max_tokens=MAX_TOKENS, encoding_tokens=MAX_TOKENS
    )
    factors = adapted(model.encoder, backbone, parts, rank)
    if adapter is not None:
        factors.save_pretrained(adapter)
    model.encoder = factors.float().merge_and_unload()
    return model, tokenizer


def weighted(given: str) -> tuple[str, float]:
    """Read a part and its weight, 1 unless it is named."""
    path, _, weight = given.rpartition("=")
    return (path, float(weight)) if path else (given, 1.0)


def main() -> None:
    """Merge, and write the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backbone", required=True)
    parser.add_argument("--model", nargs="+", required=True, type=weighted, metavar="FOLDER=WEIGHT")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--output", type=Path, required=True, help="must not exist yet")
    options = parser.parse_args()
    if options.output.exists():
        parser.error(f"{options.output} exists already; choose a new folder or remove it")
    print(
        f"Wrote {merge(options.backbone, dict(options.model), options.rank, options.output).path}"
    )


if __name__ == "__main__":
    main()
