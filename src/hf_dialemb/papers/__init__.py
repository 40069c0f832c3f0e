"""What serves the reproduction of the five papers alone; it hangs in by entry points, and nothing imports it."""
