"""ANALYZE: statistics of a table's rows, for the planners of other engines."""
