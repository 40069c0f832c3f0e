"""The readers.

One module for each corpus, or for the few that share a format, ending in its tuple ``CORPORA``.
"""
