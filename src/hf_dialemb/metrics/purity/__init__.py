"""Cluster purity and normalised mutual information: do k-means clusters of dialogues agree with their domains?"""
