"""Find and load models: folders, Hub ids, and the encoders that come with the package."""
