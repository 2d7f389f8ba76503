"""Spark processes that a task starts, watches and ends."""
