"""Metrics of embeddings, one self-contained folder each: pure numpy functions that `evaluate` can ship as they are."""
