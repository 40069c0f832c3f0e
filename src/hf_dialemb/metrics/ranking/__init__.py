"""Ranking: average precision and reciprocal rank of a query over candidates of its own."""
