# SPDX-License-Identifier: Apache-2.0
"""Lake tables on Spark, and jobs. Each job has a function ``run(request)``, which works in this
process or on a cluster.

    import spark_jobs

    spark = spark_jobs.session(warehouse="warehouse")
    orders = spark_jobs.read_table(spark, "shop.orders")
    spark_jobs.write_table(orders.where("paid"), "shop.paid_orders")

Importing this package, or a job, loads neither pyspark nor pyarrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_jobs.frames.call import call
    from spark_jobs.frames.count import count_table
    from spark_jobs.frames.executor import SparkExecutor
    from spark_jobs.frames.read import read_changes, read_table
    from spark_jobs.frames.routing import by_bucket
    from spark_jobs.frames.session import register, session
    from spark_jobs.frames.views import create_views
    from spark_jobs.frames.write import write_stream_batch, write_table

__all__ = [
    "SparkExecutor",
    "by_bucket",
    "call",
    "count_table",
    "create_views",
    "read_changes",
    "read_table",
    "register",
    "session",
    "write_stream_batch",
    "write_table",
]

# The same as the imports for type checkers.
_MODULE_OF = {
    "SparkExecutor": "executor",
    "by_bucket": "routing",
    "call": "call",
    "count_table": "count",
    "create_views": "views",
    "read_changes": "read",
    "read_table": "read",
    "register": "session",
    "session": "session",
    "write_stream_batch": "write",
    "write_table": "write",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.frames.{_MODULE_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
