"""Everything that makes a plan out of a source and commits it."""
