"""Lake tables as DataFrames: read, written, counted and compacted by Spark's tasks."""
