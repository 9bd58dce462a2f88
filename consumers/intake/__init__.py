"""The intake: from a topic of plan commits into the inbox. It is short, and it never applies anything (design 5)."""
