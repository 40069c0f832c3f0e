"""Metrics of embeddings: numpy functions, one file each.

`pages.toml` has what the Space of each shows.
"""
