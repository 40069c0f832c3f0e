"""Corpora that only the papers' tables use, and datasets made of several corpora."""

from pathlib import Path

from ...data.corpus import read_catalogue

CATALOGUE = read_catalogue(Path(__file__).with_name("catalogue.json"))
CORPORA = {name: f"{__name__}.readers.{stated['module']}" for name, stated in CATALOGUE.items()}
"""From the name of a corpus to the module that reads it."""
