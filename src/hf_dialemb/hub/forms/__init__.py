"""The forms of published models, and how each is verified."""
