"""Next-utterance retrieval: mean reciprocal rank, hits and recall of the true response among candidates."""
