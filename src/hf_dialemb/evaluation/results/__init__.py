"""Results: rows of figures, the papers' own, and tables of both."""
