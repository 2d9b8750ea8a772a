"""What is done when nobody says otherwise, in one place, without importing anything."""

BEAM = 8
"""Width of the beam search that photos are captioned with."""
CLIP_BEAM = 3
"""The same for clips: every frame has its own search, and the frames then agree on a sentence."""
PIXELS_AT_ONCE = 24_000_000
"""Photos are looked at together up to so many pixels, which bounds memory whatever their sizes."""
