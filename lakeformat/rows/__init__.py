"""Rows in memory: conditions, pruning, sortable keys; independent of tables."""
