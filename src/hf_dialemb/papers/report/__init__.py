"""Reports: a page of tables and pictures."""
