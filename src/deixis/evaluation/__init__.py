"""Asks a model as people do, and scores what it says."""
