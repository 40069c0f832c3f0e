"""The page of a flow: one HTML file that a designer reads."""
