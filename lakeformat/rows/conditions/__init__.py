"""Conditions on rows: as the caller writes them, and bound to the columns of a table."""
