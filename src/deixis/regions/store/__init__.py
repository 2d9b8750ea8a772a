"""Regions on disk: reading, writing, and what a store keeps."""
