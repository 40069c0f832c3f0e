"""Vectors of labels: embedded once by any sentence-transformers model, and kept beside the run."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..models.backbones import resolve_backbone
from ..models.shipped import sha256
from ..runs.files import kept_vectors


def label_vectors(labels: Sequence[str], encoder: str, folder: Path) -> np.ndarray:
    """Embeds K labels, (K, E) float32, or reads their vectors if this run has embedded the same ones before."""
    # A model in a folder may be trained again; the weights of one on the Hub need not be at hand.
    weights = [sha256(file) for file in sorted(Path(encoder).rglob("*.safetensors"))]
    key = hashlib.sha256(json.dumps([encoder, *weights, list(labels)]).encode()).hexdigest()

    def embed() -> np.ndarray:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(resolve_backbone(encoder)).float()
        vectors = model.encode(list(labels), convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)

    return kept_vectors(folder / f"label_vectors-{key[:8]}.safetensors", embed)
