"""Anisotropy: how alike vectors of one label are, and how alike the labels are to each other."""
