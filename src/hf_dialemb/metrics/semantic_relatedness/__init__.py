"""Semantic relatedness: Spearman's correlation of cosines with sharing a label."""
