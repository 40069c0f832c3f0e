"""What corpora hold: figures, pictures, leakage between them, and many of them as one dataset."""
