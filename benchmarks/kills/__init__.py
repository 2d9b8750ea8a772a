"""Commands killed at chosen and at random moments: does the same command go on, and is the result the same?"""
