"""What the field measures: captions, grounding F1, phrase accuracy, error types, retrieval, and reports of them."""
