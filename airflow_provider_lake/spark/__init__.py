"""Processes of Spark that a task starts, watches and ends."""
