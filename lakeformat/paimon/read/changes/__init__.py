"""What changed between snapshots, once or as a stream."""
