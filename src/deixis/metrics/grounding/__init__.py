"""Whether words and phrases point at the right boxes."""
