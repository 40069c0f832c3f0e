"""Audits of corpora: counts, pictures, and leakage between them."""
