"""Changes between snapshots, read once or as a stream."""
