"""DELETE and UPDATE of single rows: find their files, and write the replacement."""
