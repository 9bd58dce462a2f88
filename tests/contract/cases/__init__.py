"""The destination's contract: conversations that run alike against the sandbox and against a real Infrahub."""
