"""Find dialogue flows (Dialog2Flow).

Utterances are clustered, and dialogues become paths of a graph to read.
"""
