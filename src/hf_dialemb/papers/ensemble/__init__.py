"""Multi-granularity training from one recipe: runs, ensembles, analyses, tables."""
