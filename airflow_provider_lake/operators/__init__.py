"""Operators for lake tables."""
