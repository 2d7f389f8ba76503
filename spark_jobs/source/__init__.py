"""``format("lake")``: tables as a data source of Spark, for reads and writes of batches and
streams.
"""
