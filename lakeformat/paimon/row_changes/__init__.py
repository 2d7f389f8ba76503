"""DELETE and UPDATE of single rows: which files they are in, and what takes their place."""
