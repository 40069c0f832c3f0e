"""Vectors of labels: embedded once by any sentence-transformers model, and kept beside the run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..models.backbones import resolve_backbone
from ..runs.files import write_atomically


def label_vectors(labels: Sequence[str], encoder: str, folder: Path) -> np.ndarray:
    """Embeds labels, or reads their vectors if this run has embedded the same ones before.

    Returns (K, E) float32.
    """
    from safetensors import safe_open
    from safetensors.numpy import save_file

    key = hashlib.sha256(json.dumps([encoder, *_weights(Path(encoder)), list(labels)]).encode()).hexdigest()
    file = folder / f"label_vectors-{key[:8]}.safetensors"
    if file.is_file():
        with safe_open(file, framework="np") as kept:
            found: np.ndarray = kept.get_tensor("vectors")
            return found
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(resolve_backbone(encoder)).float()
    vectors = np.asarray(model.encode(list(labels), convert_to_numpy=True, show_progress_bar=False), dtype=np.float32)
    write_atomically(file, lambda path: save_file({"vectors": vectors}, path))
    return vectors


def _weights(folder: Path) -> list[str]:
    """Hashes the weights of a model in a folder, which may be trained again; what is on the Hub need not be at hand."""
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.rglob("*.safetensors"))]
