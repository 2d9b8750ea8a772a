"""Regions of many images: work cut into tasks, on one machine or many."""
