"""Aggregate functions: how the values of one column and one key become one value."""
