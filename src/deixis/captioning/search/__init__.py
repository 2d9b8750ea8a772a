"""How a caption is found: greedy, sampling, beams."""
