"""What the processes measure, for Prometheus: one table of all metrics, and the registries that are made from it."""
