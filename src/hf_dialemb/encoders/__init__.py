"""Encoders of dialogues: what a spec names, loaded; baselines; and vectors that are kept."""
