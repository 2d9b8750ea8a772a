"""Drawings and files for other tools."""
