"""Rows in memory: conditions, pruning, keys that sort; nothing here knows a table."""
