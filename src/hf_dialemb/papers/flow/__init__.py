"""Measure flows against annotations (Dialog2Flow, section 7)."""
