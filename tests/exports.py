"""Checkpoints and exports on disk as sentence-transformers loads them, and how near vectors are."""

from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer


def save(made, folder: Path) -> Path:
    """Write a model and its tokenizer."""
    for part in made:
        part.save_pretrained(folder)
    return folder


def stock(folder: Path | str) -> SentenceTransformer:
    return SentenceTransformer(str(folder), device="cpu")


def close(vectors: np.ndarray, expected: np.ndarray, tolerance: float = 1e-6) -> bool:
    return vectors.shape == expected.shape and bool(
        np.abs(vectors - expected).max() <= tolerance * np.abs(expected).max()
    )
