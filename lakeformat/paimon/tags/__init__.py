"""Tags: named snapshots that do not expire; created, moved, and deleted with their files."""
