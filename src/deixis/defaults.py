"""What is done when nobody says otherwise, in one place, without importing anything."""

BEAM = 8
"""Width of the beam search that photos are captioned with."""
CLIP_BEAM = 3
"""The same for clips: every frame has its own search, and the frames then agree on a sentence."""
