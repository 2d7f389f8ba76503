"""Orphan files, missing files, and hints that are wrong."""
