"""Whole partitions: listed, expired, dropped, or marked as done."""
