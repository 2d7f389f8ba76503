"""Notifiers, for callbacks of tasks and DAGs, and for deadline alerts."""
