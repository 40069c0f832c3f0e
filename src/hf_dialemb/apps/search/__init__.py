"""Find dialogues, utterances and responses by their vectors."""
