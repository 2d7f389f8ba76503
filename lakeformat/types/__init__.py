"""Logical types: as text, as JSON, in Arrow, under casts; and values as text for people."""
