"""Relay: every event of the ledger onto the topic of events, in order, at least once."""
