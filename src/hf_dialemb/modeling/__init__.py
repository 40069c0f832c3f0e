"""The code that a published model carries: a configuration and a modelling file, which need torch and transformers."""
