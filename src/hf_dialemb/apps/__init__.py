"""Applications: embed, search, rank, train ensembles, and the demo."""
