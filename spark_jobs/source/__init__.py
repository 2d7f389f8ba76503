"""``format("lake")``: tables as a data source of Spark, read and written, as batch and stream."""
