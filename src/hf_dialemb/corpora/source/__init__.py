"""The files that corpora come in: folders and archives read in place, JSON and tables read piece by piece."""
