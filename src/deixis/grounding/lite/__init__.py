"""The grounder that ships."""
