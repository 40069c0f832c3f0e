"""Cluster purity, mutual information and Rand index: do k-means clusters of dialogues agree with their domains?"""
