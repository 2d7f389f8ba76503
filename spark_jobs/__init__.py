"""Jobs on lake tables: the same ``run(request)`` inside one process or on Spark.

Importing a job loads neither pyspark nor pyarrow; running it does.
"""
