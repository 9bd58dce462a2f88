"""The command line, composition root of the project."""
