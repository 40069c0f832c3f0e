"""Dialogue retrieval: mean average precision and mean reciprocal rank over all other dialogues."""
