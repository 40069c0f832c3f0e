"""Readers that never met the real files: those could not be had, so records made by hand in their format stood in."""
