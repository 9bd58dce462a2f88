"""Everything that takes a plan commit and applies it to its destination."""
