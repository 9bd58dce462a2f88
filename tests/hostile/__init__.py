"""Hostile artifacts and hostile answers: what comes from outside is a named verdict, never a crash."""
