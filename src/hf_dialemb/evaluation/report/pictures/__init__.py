"""Pictures of a benchmark as PNG files: bars of figures, paths of training, cells on the sphere, trees of labels."""
