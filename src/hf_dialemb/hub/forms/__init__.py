"""The forms that checkpoints are published in, and how each is tried."""
