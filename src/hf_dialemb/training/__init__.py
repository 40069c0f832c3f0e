"""Training.

Settings, examples in a resumable order, and a thin subclass of transformers' Trainer.
"""
