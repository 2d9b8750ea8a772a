"""The page and the HTTP interface."""
