"""Publish models, metrics and datasets on the Hub."""
