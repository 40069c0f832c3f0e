"""Adjusted alignment and uniformity: how embeddings spread over the unit sphere."""
