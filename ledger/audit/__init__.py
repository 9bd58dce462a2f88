"""Audit: replay and verification of what was recorded."""
