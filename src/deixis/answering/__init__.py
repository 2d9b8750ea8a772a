"""Photos and clips in, grounded sentences and phrases out: the models joined with their extractor, ready to answer."""
