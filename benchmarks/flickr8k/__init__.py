"""The tables of the papers on Flickr8k's photos, one command each; see ``docs/reports/results.md``."""
