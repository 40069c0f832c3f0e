"""Model cards, rendered from files."""
