"""Encoders: dialogues and utterances in, vectors out."""

from .encoder import Encoder as Encoder
from .loading import load_encoder as load_encoder
