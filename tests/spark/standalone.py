"""A Spark standalone cluster on loopback: a master and two workers, each a process of ours."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

__all__ = ["Cluster", "standalone_cluster"]

_ROOT = Path(__file__).resolve().parents[2]
_READY_SECONDS = 120
_WORKERS = 2
LOADED = "--conf spark.python.daemon.module=tests.spark.loaded_workers"
_DEPLOY = "org.apache.spark.deploy"


@dataclass
class Cluster:
    """The address of the cluster, and its processes."""

    url: str
    web: str
    home: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def driver(self, script: Path, *words: str) -> subprocess.Popen[str]:
        """Start a Python program whose session runs on the cluster."""
        return subprocess.Popen(
            [sys.executable, str(script), self.url, *words],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def executors(self) -> list[int]:
        """The process ids of all executors, the children of the workers."""
        return [child for worker in self.workers for child in _children(worker.pid)]


@contextmanager
def standalone_cluster(home: Path) -> Iterator[Cluster]:
    """Start it, wait until both workers are there, and end its processes by their ids."""
    port, web = _free_port(), _free_port()
    cluster = Cluster(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{web}", home)
    started: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
    try:
        where = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web)]
        started.append(_start(home, "master", f"{_DEPLOY}.master.Master", *where))
        for number in range(_WORKERS):
            host = f"127.0.0.{number + 1}"
            words = ["--host", host, "--webui-port", str(_free_port()), "-c", "1"]
            words += ["-m", "1g", "-d", str(home / f"work-{number}"), cluster.url]
            worker = _start(home, f"worker-{number}", f"{_DEPLOY}.worker.Worker", *words, host=host)
            started.append(worker)
            cluster.workers.append(worker[0])
        _wait_for_workers(cluster)
        yield cluster
    finally:
        for process, log in reversed(started):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            log.close()


def environment() -> dict[str, str]:
    """Return the environment of the cluster's processes and drivers."""
    return {
        **os.environ,
        "PYTHONPATH": str(_ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"{LOADED} --conf spark.executor.memory=512m "
        "--conf spark.executor.cores=1 --conf spark.cores.max=2 "
        "--conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=4 pyspark-shell",
    }


def _start(
    home: Path, name: str, kind: str, *words: str, host: str = "127.0.0.1"
) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    import pyspark

    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    log = (home / f"{name}.log").open("wb")
    process = subprocess.Popen(
        [str(program), kind, *words],
        env={**environment(), "SPARK_LOCAL_IP": host},
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    return process, log


def _wait_for_workers(cluster: Cluster) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError, ValueError), urllib.request.urlopen(f"{cluster.web}/json/") as page:
            state = json.load(page)
            if sum(worker["state"] == "ALIVE" for worker in state["workers"]) == _WORKERS:
                return
        time.sleep(0.2)
    logs = "".join(path.read_text()[-2000:] for path in sorted(cluster.home.glob("*.log")))
    raise AssertionError(f"no cluster of {_WORKERS} workers after {_READY_SECONDS} s:\n{logs}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _children(parent: int) -> list[int]:
    found = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]
