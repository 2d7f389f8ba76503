"""Compaction: which files become fewer and larger ones, and how."""
