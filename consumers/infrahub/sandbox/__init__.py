"""A small Infrahub for demo, rehearsal and tests."""
