"""Prototype classification: is the nearest mean of a few labelled vectors that of the own label?"""
