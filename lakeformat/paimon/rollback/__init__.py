"""Rollback to an earlier state: by a new snapshot, or by deleting newer ones."""
