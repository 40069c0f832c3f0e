"""Convert PLATO's released checkpoints without running any code that a file holds."""
