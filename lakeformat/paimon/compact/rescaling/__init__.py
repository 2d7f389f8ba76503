"""Rescaling: existing rows in another number of buckets."""
