"""Corpora that only the papers' tables use, and what is made of several."""

CORPORA: dict[str, str] = {}
"""Corpus name to the module that reads it."""
