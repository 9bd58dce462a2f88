"""Secrets planted wherever one can be, and a search for them in everything that the program leaves behind (G12)."""
