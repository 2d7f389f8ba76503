"""Processes that outlive the worker of a deferred task, and end when no task asks for them."""
