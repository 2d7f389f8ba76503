"""A job's message about a failure in Spark's tasks begins with the cause."""

from __future__ import annotations

import pytest

from spark_jobs.runtime.failure_text import failure_text

OF_PYTHON = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/prices.py", line 10, in price
    raise ValueError("pear has no price")
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: pear has no price
"""
OF_FILES = """An error occurred while calling o174.parquet.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file \
file:///in/a.parquet.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(Errors.scala:911)
\tat org.apache.spark.sql.execution.FileScan.hasNext(FileScan.scala:141)
Caused by: java.lang.RuntimeException: file:/in/a.parquet is not a Parquet file
\tat org.apache.parquet.hadoop.ParquetFileReader.readFooter(ParquetFileReader.java:1)
\t... 1 more
"""
IN_A_STAGE = """An error occurred while calling o249.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 5.0 failed 1 \
times, most recent failure: Lost task 0.0 in stage 5.0: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:3122)
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\t... 1 more
"""
PYTHON_IN_A_STAGE = f"""An error occurred while calling o1.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 1.0 failed: \
org.apache.spark.api.python.PythonException: {OF_PYTHON.split("below.")[1].strip()}

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:645)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OF_PYTHON, 'ValueError: pear has no price (File "/prices.py", line 10, in price)'),
        (PYTHON_IN_A_STAGE, 'ValueError: pear has no price (File "/prices.py", line 10, in price)'),
        (
            OF_FILES,
            "RuntimeException: file:/in/a.parquet is not a Parquet file (SparkException: "
            "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/a.parquet. "
            "SQLSTATE: KD001)",
        ),
    ],
)
def test_the_cause_leads_and_where_it_was_follows(text, said):
    assert failure_text(RuntimeError(text)) == said


def test_a_disk_without_room_is_told_with_what_helps():
    said = failure_text(RuntimeError(IN_A_STAGE))

    assert said.startswith("IOException: No space left on device (SparkException: Job aborted due")
    assert said.endswith("set TMPDIR to another directory before Spark starts")


def test_what_is_no_trace_is_said_as_it_is():
    said = "snapshot 3 has expired:\n  read a newer one"
    assert failure_text(ValueError(said)) == "snapshot 3 has expired: read a newer one"
