"""Readers of corpora that only the papers' tables use."""
