"""The ledger over HTTP: what is recorded, orders for the writers, and events as they come."""
