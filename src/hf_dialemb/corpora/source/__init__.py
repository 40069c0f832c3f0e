"""The files of corpora: folders and archives read in place, JSON and tables read record by record."""
