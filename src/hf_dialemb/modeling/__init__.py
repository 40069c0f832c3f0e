"""The code that a published model carries.

A configuration and a modelling file, which need torch and transformers.
"""
