"""Hostile answers of a destination, the verdict that each deserves by the rules alone, and a runner over many."""
