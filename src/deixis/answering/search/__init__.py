"""Search of a folder of photos by phrase or sentence.

An index is made once and kept up to date (``index.py``). Searching has two stages: first the scores of single words,
stored for every photo, are added up for all photos (``words.py``); then the grounder itself reads the whole phrase
against the stored regions of the best, orders them anew, and says where in the photo the answer is.
"""
