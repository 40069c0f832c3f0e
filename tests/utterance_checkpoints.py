"""Training checkpoints of utterance encoders, untrained: what export, embedding and evaluation start from."""

from pathlib import Path

import torch

from hf_dialemb.models.dse import DSEModel


def save_dse(backbone: str, folder: Path, dtype: torch.dtype = torch.float32, **settings: object) -> Path:
    """Writes DSE around a backbone, as training does, and returns the folder."""
    torch.manual_seed(3)
    settings = {"encoding_tokens": settings.get("max_tokens", 32), **settings}
    model, tokenizer = DSEModel.from_backbone(backbone, **settings)
    model.to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
