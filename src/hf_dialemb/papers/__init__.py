"""What serves the reproduction of the five papers alone.

It hangs in by entry points, and nothing imports it.
"""
