"""Infrahub: reader, write surface, sandbox."""
