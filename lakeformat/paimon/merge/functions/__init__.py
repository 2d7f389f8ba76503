"""Aggregate functions: each makes one value of the values of one column and one key."""
