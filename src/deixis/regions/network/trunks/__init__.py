"""Trunks: what turns pixels into maps that the rest of the network reads."""
