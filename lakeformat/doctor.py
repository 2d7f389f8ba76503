# SPDX-License-Identifier: Apache-2.0
"""Checks that this machine can run the library, and names what to install or set.

Versions come from the installed metadata. So the check is quick, and works even if a package fails
to load.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from lakeformat.errors import InvalidRequestError

__all__ = ["DISTRIBUTION", "Finding", "Status", "diagnose"]

DISTRIBUTION = "airflow-provider-lake"

# An extra whose first package is absent is not installed: that is no failure.
FIRST_PACKAGE = {
    "airflow": "apache-airflow",
    "spark": "pyspark",
    "s3": "obstore",
    "jdbc": "SQLAlchemy",
    "iceberg": "pyiceberg",
}
OLDEST_PYTHON = (3, 11)
OLDEST_JAVA = 17
# Spark 4.1 supports these: on Java 25 its Hadoop client fails with "getSubject is not supported".
NEWEST_JAVA = 21
FIRST_SPARK_WITHOUT_THAT_LIMIT = (4, 2)


class Status(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"
    """Something optional is missing, is not set, or was not checked."""
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    status: Status
    found: str
    advice: str = ""
    """The next step; "" if no step is needed."""

    def to_dict(self) -> dict[str, str]:
        """Return the finding as plain values, ready for JSON."""
        return {
            "name": self.name,
            "status": str(self.status),
            "found": self.found,
            "advice": self.advice,
        }


def diagnose(
    warehouse: str | None = None, *, environ: Mapping[str, str] = os.environ
) -> list[Finding]:
    """Check Python, packages, Java, Spark and write access, and return the findings.

    ``warehouse`` is the folder that tables are written to; default: ``./warehouse``.
    """
    return [
        check_python(sys.version_info[:2]),
        *check_packages(),
        check_spark_pair(installed_version("pyspark"), installed_version("pyspark-client")),
        check_java(environ),
        check_spark_submit(environ),
        check_warehouse(warehouse or "warehouse"),
    ]


def check_python(running: tuple[int, int]) -> Finding:
    """Check that the running Python is not older than the oldest supported version."""
    found = platform.python_version()
    if running >= OLDEST_PYTHON:
        return Finding("python", Status.OK, found)
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return Finding("python", Status.FAIL, found, f"use Python {oldest} or newer")


def check_packages() -> Iterator[Finding]:
    """Check the version of this library, each package that it requires, and the extras."""
    own = installed_version(DISTRIBUTION)
    if own is None:
        advice = f"pip install {DISTRIBUTION} (in a clone: pip install -e .)"
        yield Finding(DISTRIBUTION, Status.FAIL, "not installed", advice)
        return
    yield Finding(DISTRIBUTION, Status.OK, own)
    required = [Requirement(text) for text in requires(DISTRIBUTION) or []]
    for requirement in required:
        if is_wanted(requirement, extra=""):
            yield check_requirement(requirement)
    for extra, first in FIRST_PACKAGE.items():
        if installed_version(first) is None:
            advice = f"if you need it: pip install '{DISTRIBUTION}[{extra}]'"
            yield Finding(f"[{extra}]", Status.WARN, "not installed", advice)
            continue
        for requirement in required:
            if is_wanted(requirement, extra=extra) and not is_wanted(requirement, extra=""):
                yield check_requirement(requirement, label=f"{requirement.name} [{extra}]")


def is_wanted(requirement: Requirement, *, extra: str) -> bool:
    """Return True if ``requirement`` has no marker, or a marker that holds on this machine.

    The marker is evaluated with ``extra``; "" stands for no extra.
    """
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def check_requirement(requirement: Requirement, *, label: str | None = None) -> Finding:
    """Check that a package is installed in a version that the requirement allows.

    ``label`` is the name in the finding; default: the name of the package.
    """
    name = label or requirement.name
    found = installed_version(requirement.name)
    advice = f"pip install '{requirement.name}{requirement.specifier}'"
    if found is None:
        return Finding(name, Status.FAIL, "not installed", advice)
    if not requirement.specifier.contains(found, prereleases=True):
        return Finding(name, Status.FAIL, f"{found}, not {requirement.specifier}", advice)
    return Finding(name, Status.OK, found)


def installed_version(name: str) -> str | None:
    """Return the installed version of a distribution; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def check_spark_pair(full: str | None, client: str | None) -> Finding:
    """Check that ``pyspark`` and ``pyspark-client`` have the same version.

    Both install their files into one folder, so two versions overwrite each other. The arguments
    are the two versions; None stands for a package that is not installed.
    """
    name = "pyspark pair"
    if full is None and client is None:
        return Finding(name, Status.WARN, "no pyspark", f"pip install '{DISTRIBUTION}[spark]'")
    if full is None:
        advice = f"for Spark on this machine: pip install 'pyspark=={client}'"
        return Finding(name, Status.WARN, f"pyspark-client {client} alone", advice)
    if client is None or client == full:
        found = "pyspark" if client is None else "pyspark and pyspark-client, both"
        return Finding(name, Status.OK, f"{found} {full}")
    pair = f"pyspark=={full} pyspark-client=={full}"
    return Finding(
        name,
        Status.FAIL,
        f"pyspark {full} and pyspark-client {client} overwrite each other's files",
        f"pip install --force-reinstall --no-deps {pair}",
    )


def check_java(environ: Mapping[str, str]) -> Finding:
    """Check the version of the Java that Spark would start.

    If neither ``JAVA_HOME`` nor ``PATH`` leads to Java, check the Java in the environment of this
    Python. Spark does not look there, so that finding is never OK.
    """
    needed = f"install Java {OLDEST_JAVA} to {NEWEST_JAVA} and set JAVA_HOME to it"
    spark = installed_version("pyspark")
    binary, origin = find_java(environ)
    if binary is None:
        status = Status.FAIL if spark else Status.WARN
        return Finding("java", status, "none", needed if spark else f"for Spark: {needed}")
    found = ask_java_version(binary)
    if found is None:
        return Finding("java", Status.FAIL, f"{binary} ({origin}) does not run", needed)
    text = f"{found} at {binary} ({origin})"
    if found < OLDEST_JAVA or (found > NEWEST_JAVA and is_limited(spark)):
        return Finding("java", Status.FAIL, text, needed)
    if origin == "environment":
        home = Path(binary).parent.parent
        advice = f"Spark does not find this Java: export JAVA_HOME={home}"
        return Finding("java", Status.WARN, text, advice)
    return Finding("java", Status.OK, text)


def find_java(environ: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the path of ``java`` and the place where it was found.

    The place is ``JAVA_HOME``, ``PATH`` or ``environment``. The last one means the folder ``java``
    in the environment of this Python. If ``JAVA_HOME`` is set, the path of ``java`` in it is
    returned even if this file does not exist. Without Java the result is ``(None, "")``.
    """
    home = environ.get("JAVA_HOME")
    if home:
        return str(Path(home, "bin", "java")), "JAVA_HOME"
    on_path = shutil.which("java", path=environ.get("PATH"))
    if on_path:
        return on_path, "PATH"
    beside = Path(sys.prefix, "java", "bin", "java")
    return (str(beside), "environment") if beside.exists() else (None, "")


def ask_java_version(binary: str) -> int | None:
    """Return the major version that the program ``java`` reports; None if the program does not
    run.
    """
    try:
        answer = subprocess.run(
            [binary, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Java 8 reports its version as 1.8.
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match and answer.returncode == 0 else None


def is_limited(spark: str | None) -> bool:
    """Return True if this version of Spark fails on Java versions above 21; False for None."""
    if spark is None:
        return False
    major, minor = spark.split(".")[:2]
    return (int(major), int(minor)) < FIRST_SPARK_WITHOUT_THAT_LIMIT


def check_spark_submit(environ: Mapping[str, str]) -> Finding:
    """Find the launcher of Spark jobs on the PATH, or else inside the installed pyspark."""
    on_path = shutil.which("spark-submit", path=environ.get("PATH"))
    if on_path:
        return Finding("spark-submit", Status.OK, f"{on_path} (PATH)")
    full = installed_version("pyspark")
    if full is None:
        advice = f"for Spark jobs: pip install '{DISTRIBUTION}[spark]'"
        return Finding("spark-submit", Status.WARN, "none", advice)
    inside = Path(str(distribution("pyspark").locate_file("pyspark/bin/spark-submit")))
    if os.access(inside, os.X_OK):
        return Finding("spark-submit", Status.OK, f"{inside} (inside pyspark)")
    client = "" if installed_version("pyspark-client") is None else f" pyspark-client=={full}"
    advice = f"pip install --force-reinstall --no-deps pyspark=={full}{client}"
    return Finding("spark-submit", Status.FAIL, f"missing from pyspark: {inside}", advice)


def check_warehouse(warehouse: str) -> Finding:
    """Check that this user can create files in the warehouse, or in the nearest existing folder
    above it.

    A probe file is created and deleted; no folder is created. A warehouse outside of the
    local file system is not probed: the finding is a warning.
    """
    name = "warehouse"
    try:
        # Imported here: if Arrow fails to load, the other checks must still report.
        from lakeformat.storage import LocalStorage, open_storage
    except ImportError as reason:
        advice = "pip install --force-reinstall pyarrow"
        return Finding(
            name, Status.FAIL, f"not checked, because Arrow does not load: {reason}", advice
        )
    advice = "choose a writable folder with --warehouse"
    try:
        storage, root = open_storage(warehouse)
    except InvalidRequestError as refusal:
        return Finding(name, Status.FAIL, str(refusal).rstrip("."), advice)
    if not isinstance(storage, LocalStorage):
        instead = "only local folders are probed; to test this warehouse, write a small table to it"
        return Finding(name, Status.WARN, f"{warehouse} not checked", instead)
    folder = Path(root)
    nearest = folder
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        return Finding(name, Status.FAIL, f"{nearest} is not a folder", advice)
    try:
        with tempfile.NamedTemporaryFile(dir=nearest, prefix=".lake-doctor-") as probe:
            probe.write(b"probe")
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        return Finding(name, Status.FAIL, f"{nearest}: {error.strerror or error}", advice)
    state = "can be written" if nearest == folder else "can be created"
    return Finding(name, Status.OK, f"{folder} {state}")
