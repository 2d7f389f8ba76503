"""Starts Spark: the one place that does."""

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
"""Starts Spark the first time it is asked for it."""

SPARK_MARKER = "LAKE_SPARK "
"""What the line that says where the application is seen begins with, on standard output."""

_Settings: TypeAlias = "dict[str, bool | float | int | str | None]"
_ALWAYS: _Settings = {
    # An instant must mean the same on the driver, in the tasks and in the table.
    "spark.sql.session.timeZone": "UTC",
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
    """The session given, or a new one that ends with the block."""
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
    """A session for a job that may have nothing to do: Spark starts when it is needed."""
    with ExitStack() as until_done:

        @cache
        def session() -> SparkSession:
            return until_done.enter_context(job_session(given, name))

        yield session


def start_session(
    name: str, *, master: str = "local[*]", conf: Mapping[str, Any] | None = None
) -> SparkSession:
    """A quiet session in UTC: on this machine, or where spark-submit has put us.

    ``conf`` has the last word on every setting.
    """
    from pyspark.sql import SparkSession

    given = dict(conf or {})
    builder = SparkSession.builder.appName(name).config(map=_ALWAYS)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit sets it: then it chose the master
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(master).config(map={**_place(master), **_java_options(given)})
    session = builder.config(map=given).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        _tell_where(session)
    return session


def _tell_where(session: SparkSession) -> None:
    """One line for whoever submitted this: where the application is seen."""
    context = session.sparkContext
    where = {"application_id": context.applicationId, "ui": context.uiWebUrl}
    print(f"{SPARK_MARKER}{json.dumps(where)}", flush=True)


def _place(master: str) -> _Settings:
    """What holds for this machine: executors elsewhere would look for the driver on their own."""
    if not re.match(r"local\b|spark://(localhost|127\.)", master):
        return {}
    told = {f"spark.executorEnv.{name}": value for name, value in worker_environment().items()}
    return {**_ON_THIS_MACHINE, **told}


def _java_options(given: Mapping[str, Any]) -> _Settings:
    told = [*_quiet_log(), *_throughput(given)]
    return {"spark.driver.extraJavaOptions": " ".join(told)} if told else {}


def _quiet_log() -> list[str]:
    """Errors only, from the first line on; out of an archive the JVM can read no settings."""
    settings = Path(__file__).parent.with_name("log4j2.properties")
    return [f"-Dlog4j2.configurationFile={settings.as_uri()}"] if settings.is_file() else []


def _throughput(given: Mapping[str, Any]) -> list[str]:
    """The collector that takes the least CPU: jobs wait for no single answer.

    Java's default was measured to take a tenth more for a shuffle, a third more for a scan. A JVM
    that is told two collectors does not start, so whoever has chosen one keeps it.
    """
    told = [os.environ.get(name, "") for name in _JAVA_OPTIONS]
    said = [*told, _spark_defaults(), *map(str, given.values())]
    return [] if any(map(_COLLECTOR.search, said)) else [_PARALLEL]


def _spark_defaults() -> str:
    """The settings Spark reads from a file as it starts."""
    home = os.environ.get("SPARK_HOME")
    directory = os.environ.get("SPARK_CONF_DIR") or (home and f"{home}/conf")
    file = Path(directory or "", "spark-defaults.conf")
    is_there = bool(directory) and file.is_file()
    return file.read_text(encoding="utf-8", errors="replace") if is_there else ""
