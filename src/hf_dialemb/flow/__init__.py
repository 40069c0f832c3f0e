"""Dialogue flows (Dialog2Flow): utterances are clustered, dialogues become paths, paths a graph that a person reads.

`hf_dialemb.flow.pipeline` has the steps, on vectors; above it are what writes and draws (``report``, ``page``), and
what a user calls: ``extract`` from Python, ``run``, ``next`` and ``compare`` from the command line.
"""
