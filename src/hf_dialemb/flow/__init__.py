"""Find dialogue flows (Dialog2Flow): utterances are clustered, and dialogues become paths of a graph to read."""
