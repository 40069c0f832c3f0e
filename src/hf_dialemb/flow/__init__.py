"""Dialogue flows (Dialog2Flow): utterances are clustered, dialogues become paths, paths a graph that a person reads.

Nothing here knows an encoder: it works on vectors. See `hf_dialemb.flow.run` for the whole pipeline.
"""
