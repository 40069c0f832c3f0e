"""Pictures of a benchmark as PNG files: paths of training, cells on the sphere, trees of labels."""
