"""How good a caption is."""
