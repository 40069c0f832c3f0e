"""Metrics of embeddings, one file each: numpy functions and a specification, from which a Space is written."""
