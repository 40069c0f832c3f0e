"""Tasks: each loads a problem from a corpus, and the problem measures an encoder."""
