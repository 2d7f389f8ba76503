"""Lake tables as DataFrames: Spark's tasks read, write, count and compact them."""
