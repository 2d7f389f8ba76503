"""Branches: separate histories over the same data files."""
