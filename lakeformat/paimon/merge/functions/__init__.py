"""Aggregate functions: each combines the values of one column and one key to one value."""
