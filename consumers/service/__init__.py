"""The service: writers, intake and relay in one process, its metrics and its health."""
