"""Merging of rows with one key: their order, and the merge engines."""
