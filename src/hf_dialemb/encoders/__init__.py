"""Encoders: dialogues and utterances in, vectors out."""

from .encoder import Encoder as Encoder
from .load_encoder import load_encoder as load_encoder
