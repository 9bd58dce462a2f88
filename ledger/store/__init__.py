"""The store: PostgreSQL, the only place that runs SQL."""
