"""Deixis: captions whose words point at boxes, and boxes for any phrase, learned from image-caption pairs alone."""

__version__ = "0.1.0"
