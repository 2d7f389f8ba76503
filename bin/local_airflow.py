"""A whole Airflow on this machine alone: SQLite, loopback, and gone when it is closed."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

HOST = "127.0.0.1"
_GRACE_SECONDS = 10
# The pages read logs from files: nobody else has to serve them.
_COMPONENTS = (
    ("scheduler", "--skip-serve-logs"),
    ("dag-processor",),
    ("api-server",),
    ("triggerer", "--skip-serve-logs"),
)


class AirflowTroubleError(Exception):
    """Airflow did not do what was waited for; the message says where its log is."""


class LocalAirflow:
    """Starts every component in a process group of its own, and ends all of it on leaving."""

    def __init__(self, home: Path, dags: Path, *, settings: Mapping[str, str]) -> None:
        self.home = home
        self.port = _free_port()
        self.log = home / "airflow.log"
        self._environment = _environment(home, dags, self.port) | dict(settings)
        self._token = ""
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        """Where people look at it."""
        return f"http://{HOST}:{self.port}"

    def __enter__(self) -> LocalAirflow:
        self.home.mkdir(parents=True, exist_ok=True)
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _start(self) -> None:
        with self.log.open("wb") as log:
            if self._spawn(("db", "migrate"), log, group=0).wait() != 0:
                raise AirflowTroubleError(f"Airflow cannot make its database: see {self.log}")
            for words in _COMPONENTS:
                group = self._processes[0].pid if self._processes else 0
                self._processes.append(self._spawn(words, log, group=group))

    def _spawn(self, words: tuple[str, ...], log: IO[bytes], *, group: int) -> Any:
        return subprocess.Popen(
            [str(Path(sys.executable).with_name("airflow")), *words],
            env=self._environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            process_group=group,
        )

    def _end(self) -> None:
        """End the whole group: whoever was started by a component is in it."""
        if not self._processes:
            return
        group = self._processes[0].pid
        for ending, patience in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, 2)):
            _signal_group(group, ending)
            deadline = time.monotonic() + patience
            while _signal_group(group, 0) and time.monotonic() < deadline:
                for process in self._processes:
                    process.poll()  # what has ended stays a member until somebody asks
                time.sleep(0.1)

    def wait_for_dags(self, *dag_ids: str, seconds: float) -> None:
        """Return when all of these can be started."""
        for dag_id in dag_ids:
            self._wait(
                f"the DAG {dag_id}", lambda dag_id=dag_id: self._get(f"dags/{dag_id}"), seconds
            )

    def run(self, dag_id: str, conf: Mapping[str, Any], *, seconds: float) -> str:
        """Start a run and wait until it has succeeded; its id."""
        asked = {"logical_date": None, "conf": dict(conf)}
        started = self._call("POST", f"dags/{dag_id}/dagRuns", asked)
        run_id: str = started["dag_run_id"]
        self._wait(
            f"{dag_id} {run_id}",
            lambda: self._is_done(self._get(f"dags/{dag_id}/dagRuns/{run_id}")),
            seconds,
        )
        return run_id

    def wait_for_runs(self, dag_id: str, count: int, *, seconds: float) -> None:
        """Return when so many runs of a DAG have succeeded."""

        def are_done() -> bool:
            found = self._get(f"dags/{dag_id}/dagRuns") or {"dag_runs": []}
            return sum(self._is_done(run) for run in found["dag_runs"]) >= count

        self._wait(f"{count} runs of {dag_id}", are_done, seconds)

    def runs(self, dag_id: str) -> list[str]:
        """The runs of a DAG, in the order they were due."""
        found = self._get(f"dags/{dag_id}/dagRuns?order_by=run_after")
        return [run["dag_run_id"] for run in found["dag_runs"]]

    def result(self, dag_id: str, run_id: str, task_id: str) -> Any:
        """What a task has returned."""
        path = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/return_value"
        found = self._get(f"{path}?deserialize=true") or self._get(path)
        value = found["value"] if found else None
        return json.loads(value) if isinstance(value, str) else value

    def _is_done(self, run: Mapping[str, Any] | None) -> bool:
        if run is not None and run["state"] == "failed":
            raise AirflowTroubleError(
                f"{run['dag_id']} {run['dag_run_id']} failed: see {self.home}/logs"
            )
        return run is not None and run["state"] == "success"

    def _wait(self, what: str, is_there: Any, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if any(process.poll() is not None for process in self._processes):
                raise AirflowTroubleError(f"a part of Airflow ended: see {self.log}")
            try:
                if is_there():
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                pass  # it is not up yet
            time.sleep(0.5)
        raise AirflowTroubleError(f"waited {seconds:.0f} s for {what}: see {self.log}")

    def _get(self, path: str) -> Any:
        try:
            return self._call("GET", path)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        if not self._token:
            self._token = _ask("GET", f"{self.url}/auth/token", None, {})["access_token"]
        headers = {"Authorization": f"Bearer {self._token}"}
        return _ask(method, f"{self.url}/api/v2/{path}", body, headers)


def _ask(method: str, url: str, body: Any, headers: Mapping[str, str]) -> Any:
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, method=method)
    for name, value in {"Content-Type": "application/json", **headers}.items():
        asked.add_header(name, value)
    # Nothing but this machine is meant, whatever proxy the shell names.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=30) as answer:
        return json.load(answer)


def _signal_group(group: int, number: int) -> bool:
    """False if nobody of the group is left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind((HOST, 0))
        port: int = tried.getsockname()[1]
        return port


def _environment(home: Path, dags: Path, port: int) -> dict[str, str]:
    """Everything Airflow reads is said, so that no setting of the machine changes the demo."""
    bundle = {
        "name": "demo",
        "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": str(dags), "refresh_interval": 5},
    }
    settings = {
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__PARALLELISM": "2",
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "CORE__EXECUTION_API_SERVER_URL": f"http://{HOST}:{port}/execution/",
        "CORE__TEST_CONNECTION": "Enabled",
        "API__HOST": HOST,
        "API__PORT": str(port),
        "API__BASE_URL": f"http://{HOST}:{port}",
        "API__WORKERS": "1",
        "API_AUTH__JWT_SECRET": secrets.token_hex(48),
        "DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle]),
        "DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30",
        "WORKERS__EXECUTION_API_TIMEOUT": "60",
        "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    no_proxy = {"NO_PROXY": HOST, "no_proxy": HOST}
    named = {f"AIRFLOW__{key}": value for key, value in settings.items()}
    return {**kept, **no_proxy, **named, "PATH": path, "AIRFLOW_HOME": str(home)}
