"""Compaction: fewer and larger files with the same rows."""
