"""Find and load model folders: one's own, the Hub's, and those that come with the package."""
