"""Model cards, rendered from records and results files."""
