"""Grounders: what scores phrases against regions, and may move boxes."""
