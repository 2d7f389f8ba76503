"""A real Hive metastore on loopback, over Derby, for the time of a test."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.java.conftest import java_program

__all__ = ["running_metastore"]

OPENED = ("lang", "lang.reflect", "net", "nio", "util")
"""Packages of Java that the metastore, which is older than modules, looks into."""
CLASSES = "org.apache.hadoop.hive.metastore"


@contextmanager
def running_metastore(folder: Path, **more: str) -> Iterator[str]:
    """Yield the address of a new metastore; ``more`` are settings, with ``_`` for each dot."""
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/db;create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "datanucleus.schema.autoCreateAll": "true",
        "derby.stream.error.file": "/dev/null",
        "metastore.expression.proxy": f"{CLASSES}.DefaultPartitionExpressionProxy",
        "metastore.schema.verification": "false",
        "metastore.task.threads.always": f"{CLASSES}.events.EventCleanerTask",
        "metastore.task.threads.remote": f"{CLASSES}.events.EventCleanerTask",
        "metastore.warehouse.dir": f"{folder}/default",
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    start = java_program("metastore")
    command = [start["java"], "-Xmx384m", "-XX:+UseSerialGC"]
    command += [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED]
    command += [f"-D{key}={value}" for key, value in settings.items()]
    command += ["-cp", start["classpath"], "Metastore", str(_free_port())]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, cwd=folder, text=True
        ) as process,
    ):
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port, (folder / "log").read_text()
        yield f"thrift://127.0.0.1:{port}"
        process.kill()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
