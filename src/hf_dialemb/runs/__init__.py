"""Runs on disk: what lies in their folders, files written whole or not at all, and what they ran on."""
