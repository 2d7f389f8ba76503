"""Commits: from prepared files to one published snapshot, once."""
