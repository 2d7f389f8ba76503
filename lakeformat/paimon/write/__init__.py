"""Writing: turns rows into durable data files that are ready for a commit."""
