"""Pruning: skips what cannot hold rows that meet the conditions of a scan."""
