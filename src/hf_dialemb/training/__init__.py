"""Training: settings, examples in a resumable order, and a thin subclass of transformers' Trainer."""
