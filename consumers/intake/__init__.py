"""The intake moves plan commits from their topic into the inbox. It never applies anything (design 5)."""
