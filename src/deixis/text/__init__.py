"""Words: tokens, vocabulary, tags and noun phrases, relations, object classes."""
