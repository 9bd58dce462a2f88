"""Exports of a ledger: files that an auditor reads and proves without its database and without this service."""
