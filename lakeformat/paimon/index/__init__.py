"""Index files: which rows are deleted, which keys a bucket has, where a value can be."""
