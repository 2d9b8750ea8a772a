"""Regions of an image: finding them, describing them, and keeping them on disk."""
