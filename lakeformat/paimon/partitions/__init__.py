"""Partitions as a whole: which are there, which have expired, which are done."""
