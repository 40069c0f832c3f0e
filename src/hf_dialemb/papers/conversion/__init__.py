"""Official checkpoints into this package's own: key tables, readers that run no code of the file, and a report."""
