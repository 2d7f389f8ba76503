"""Tags: snapshots kept under a name; made, moved, and deleted with what only they held."""
