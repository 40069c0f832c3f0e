"""Checkpoints on their way out: export, verification, embedding files, the demo."""
