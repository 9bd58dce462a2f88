"""The ledger: plan format, events, store, projections, audit and command line."""
