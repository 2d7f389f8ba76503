"""Index files: deleted rows, the keys of a bucket, and places of values."""
