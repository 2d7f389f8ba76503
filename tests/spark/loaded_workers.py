"""Spark's daemon of Python workers, which loads our packages once, before it forks workers.

A new worker then works at once, where it would first import for a second. Spark starts this module
in the root of the repository, as it would start ``pyspark.daemon``.
"""

import gc

import pandas  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pyspark.sql.connect.conversion  # noqa: F401
from pyspark.daemon import manager

import spark_jobs.frames.spark_write
import spark_jobs.source.lake_source  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # workers collect their garbage after each task
    manager()
