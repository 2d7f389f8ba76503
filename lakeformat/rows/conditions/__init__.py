"""Conditions on rows: as they are given, and bound to the columns of a table."""
