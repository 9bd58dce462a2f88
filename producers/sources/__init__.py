"""Source plug-ins."""
