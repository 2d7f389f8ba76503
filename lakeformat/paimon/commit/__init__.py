"""Commits: publish prepared files as one snapshot, exactly once."""
