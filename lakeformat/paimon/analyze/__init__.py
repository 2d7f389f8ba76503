"""ANALYZE: what a table's rows look like, counted and kept for the planners of other engines."""
