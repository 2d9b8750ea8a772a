"""Labels that a person corrected: read from the tools' files, compared with the draft, and made into training data."""
