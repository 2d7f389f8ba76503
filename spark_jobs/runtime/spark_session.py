# SPDX-License-Identifier: Apache-2.0
"""Starts Spark; no other module does."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from spark_jobs.runtime.processor import worker_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SPARK_MARKER", "Sessions", "job_session", "sessions", "start_session"]

Sessions: TypeAlias = "Callable[[], SparkSession]"
"""A function that returns the Spark session; its first call starts Spark."""

SPARK_MARKER = "LAKE_SPARK "
"""The beginning of the line with the Spark application, on standard output."""

_Settings: TypeAlias = "dict[str, bool | float | int | str | None]"
_ALWAYS: _Settings = {
    # A time must have the same meaning on the driver, in the tasks and in the table.
    "spark.sql.session.timeZone": "UTC",
    # Otherwise Spark compares ten days of October 1582, which java.sql.Date lacks, with wrong
    # bounds of files.
    "spark.sql.datetime.java8API.enabled": True,
    "spark.sql.execution.arrow.maxRecordsPerBatch": 65536,
    "spark.ui.showConsoleProgress": False,
}
_JAVA_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_PARALLEL = "-XX:+UseParallelGC"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_ON_THIS_MACHINE: _Settings = {
    "spark.ui.enabled": False,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@contextmanager
def job_session(given: SparkSession | None, name: str) -> Iterator[SparkSession]:
    """Yield the given session. If ``given`` is None, start a session and stop it after the
    block.
    """
    if given is not None:
        yield given
        return
    session = start_session(name)
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def sessions(given: SparkSession | None, name: str) -> Iterator[Sessions]:
    """Yield a function that returns the session ``given``, for jobs that may not need Spark.

    If ``given`` is None, the first call of the function starts a session, which is stopped after
    the block.
    """
    with ExitStack() as until_done:

        @cache
        def session() -> SparkSession:
            return until_done.enter_context(job_session(given, name))

        yield session


def start_session(
    name: str, *, master: str = "local[*]", conf: Mapping[str, Any] | None = None
) -> SparkSession:
    """Return a Spark session in UTC that logs only errors.

    ``master`` has no effect if spark-submit has started this process, because spark-submit has set
    the master. ``conf`` overrides every setting.
    """
    from pyspark.sql import SparkSession

    given = dict(conf or {})
    builder = SparkSession.builder.appName(name).config(map=_ALWAYS)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit has set the master
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(master).config(map={**_place(master), **_java_options(given)})
    session = builder.config(map=given).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        _print_application(session)
    return session


def _print_application(session: SparkSession) -> None:
    """Print the id and the web address of the application, for the process that has submitted
    it.
    """
    context = session.sparkContext
    where = {"application_id": context.applicationId, "ui": context.uiWebUrl}
    print(f"{SPARK_MARKER}{json.dumps(where)}", flush=True)


def _place(master: str) -> _Settings:
    """Return settings for a master on this machine, such as the driver's address. Return an empty
    dict for a cluster, whose executors could not reach this address.
    """
    if not re.match(r"local\b|spark://(localhost|127\.)", master):
        return {}
    of_workers = {
        f"spark.executorEnv.{name}": value for name, value in worker_environment().items()
    }
    return {**_ON_THIS_MACHINE, **of_workers}


def _java_options(given: Mapping[str, Any]) -> _Settings:
    words = [*_quiet_log(), *_throughput(given)]
    return {"spark.driver.extraJavaOptions": " ".join(words)} if words else {}


def _quiet_log() -> list[str]:
    """Return the Java option for a log of errors only. The list is empty if this package is in an
    archive, because a JVM cannot read the settings of the log from an archive.
    """
    settings = Path(__file__).parent.with_name("log4j2.properties")
    return [f"-Dlog4j2.configurationFile={settings.as_uri()}"] if settings.is_file() else []


def _throughput(given: Mapping[str, Any]) -> list[str]:
    """Return the Java option for the garbage collector that uses the least CPU, because jobs need
    no short pauses.

    Java's default took a tenth more CPU for a shuffle, and a third more for a scan. A JVM with two
    collectors does not start, so the result is empty if a collector is already set.
    """
    environment = [os.environ.get(name, "") for name in _JAVA_OPTIONS]
    settings = [*environment, _spark_defaults(), *map(str, given.values())]
    return [] if any(map(_COLLECTOR.search, settings)) else [_PARALLEL]


def _spark_defaults() -> str:
    """Return the text of ``spark-defaults.conf``, which Spark reads at its start; empty if there is
    none.
    """
    home = os.environ.get("SPARK_HOME")
    directory = os.environ.get("SPARK_CONF_DIR") or (home and f"{home}/conf")
    file = Path(directory or "", "spark-defaults.conf")
    is_there = bool(directory) and file.is_file()
    return file.read_text(encoding="utf-8", errors="replace") if is_there else ""
