"""A complete Airflow on this machine, with SQLite, on loopback only.

It runs until its ``with`` block ends.
"""

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from airflow_provider_lake.spark.process_tree import ProcessTree

HOST = "127.0.0.1"
_GRACE_SECONDS = 10
# The pages read logs from files, so no log server is needed.
_COMPONENTS = {
    "scheduler": ("--skip-serve-logs",),
    "dag-processor": (),
    "api-server": (),
    "triggerer": ("--skip-serve-logs",),
}
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class AirflowTroubleError(Exception):
    """Airflow did not reach the awaited state; the message names the log."""


class LocalAirflow:
    """Starts all components in one process group, and ends them after the block.

    Raises ``AirflowTroubleError`` if the database cannot be created.
    """

    def __init__(
        self, home: Path, dags: Path, *, settings: Mapping[str, str], folder: Path | None = None
    ) -> None:
        """``folder`` is the working directory of all processes, so relative paths in tasks begin
        there. None for the working directory of this process.
        """
        self.home = home
        self._folder = folder
        self.port = _free_port()
        self.log = home / "airflow.log"
        self._environment = _environment(home, dags, self.port) | dict(settings)
        self._token = ""
        self._group = 0
        self._components: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """The address of the web interface."""
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
        migration = self._spawn(("db", "migrate"))
        try:
            code = migration.wait()
        finally:
            migration.kill()  # an interrupted caller no longer waits for it
        if code != 0:
            raise AirflowTroubleError(f"Airflow cannot make its database: see {self.log}")
        for name in _COMPONENTS:
            self.start(name)

    def start(self, name: str) -> None:
        """Start the component with this name, such as ``scheduler``."""
        self._components[name] = self._spawn((name, *_COMPONENTS[name]), group=self._group)
        self._group = self._group or self._components[name].pid

    def kill(self, name: str) -> None:
        """Kill a component without any clean-up, as if its machine were lost."""
        process = self._components.pop(name)
        process.kill()
        process.wait()

    def _spawn(self, words: tuple[str, ...], *, group: int = 0) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [str(Path(sys.executable).with_name("airflow")), *words],
                env=self._environment,
                cwd=self._folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                process_group=group,
            )

    def _end(self) -> None:
        """End the components and their child processes, also those in another process
        group, such as tasks.
        """
        if not self._components:
            return
        with _undisturbed():
            trees = [ProcessTree(each) for each in self._components.values()]
            _signal_group(self._group, signal.SIGTERM)
            for tree in trees:
                tree.terminate(_GRACE_SECONDS)
            _signal_group(self._group, signal.SIGKILL)  # the component was killed before
            for process in self._components.values():
                process.wait()

    def wait_for_dags(self, *dag_ids: str, seconds: float) -> None:
        """Wait until all these DAGs can be started. Wait up to ``seconds`` for each of them, then
        raise ``AirflowTroubleError``.
        """
        for dag_id in dag_ids:
            self.wait_for(
                f"the DAG {dag_id}", lambda dag_id=dag_id: self._get(f"dags/{dag_id}"), seconds
            )

    def run(
        self, dag_id: str, conf: Mapping[str, Any], *, seconds: float, at: datetime | None = None
    ) -> str:
        """Start a run, wait until it has succeeded, and return its id; raise
        ``AirflowTroubleError`` if it fails, or after ``seconds``.
        """
        run_id = self.trigger(dag_id, conf, at=at)
        self.wait_for_run(dag_id, run_id, seconds=seconds)
        return run_id

    def trigger(self, dag_id: str, conf: Mapping[str, Any], *, at: datetime | None = None) -> str:
        """Start a run and return its id; ``at`` is its logical date, or None."""
        asked = {"logical_date": at and at.isoformat(), "conf": dict(conf)}
        started = self.ask("POST", f"dags/{dag_id}/dagRuns", asked)
        run_id: str = started["dag_run_id"]
        return run_id

    def clear(self, dag_id: str, run_id: str) -> None:
        """Clear all tasks of a run, which then do their work again."""
        asked = {"dag_run_id": run_id, "dry_run": False, "only_failed": False}
        self.ask("POST", f"dags/{dag_id}/clearTaskInstances", {**asked, "reset_dag_runs": True})

    def wait_for_run(self, dag_id: str, run_id: str, *, seconds: float) -> None:
        """Wait until this run has succeeded; raise ``AirflowTroubleError`` if it fails, or after
        ``seconds``.
        """
        path = f"dags/{dag_id}/dagRuns/{run_id}"
        self.wait_for(f"{dag_id} {run_id}", lambda: self._is_done(self._get(path)), seconds)

    def wait_for_runs(self, dag_id: str, count: int, *, seconds: float) -> None:
        """Wait until ``count`` runs of a DAG have succeeded; raise ``AirflowTroubleError`` if a run
        fails, or after ``seconds``.
        """

        def are_done() -> bool:
            found = self._get(f"dags/{dag_id}/dagRuns") or {"dag_runs": []}
            return sum(self._is_done(run) for run in found["dag_runs"]) >= count

        self.wait_for(f"{count} runs of {dag_id}", are_done, seconds)

    def set_paused(self, dag_id: str, is_paused: bool) -> None:
        """Pause a DAG, or unpause it."""
        self.ask("PATCH", f"dags/{dag_id}?update_mask=is_paused", {"is_paused": is_paused})

    def runs(self, dag_id: str) -> list[str]:
        """Return the ids of a DAG's runs, the oldest first by ``run_after``."""
        found = self._get(f"dags/{dag_id}/dagRuns?order_by=run_after")
        return [run["dag_run_id"] for run in found["dag_runs"]]

    def result(self, dag_id: str, run_id: str, task_id: str) -> Any:
        """Return the return value of a task; None if there is none yet."""
        path = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/return_value"
        found = self._get(f"{path}?deserialize=true")
        return found["value"] if found else None

    def _is_done(self, run: Mapping[str, Any] | None) -> bool:
        if run is not None and run["state"] == "failed":
            raise AirflowTroubleError(
                f"{run['dag_id']} {run['dag_run_id']} failed: see {self.home}/logs"
            )
        return run is not None and run["state"] == "success"

    def wait_for(self, what: str, is_there: Callable[[], Any], seconds: float) -> None:
        """Wait until ``is_there`` returns a true value; the error names this state as ``what``.

        Raises ``AirflowTroubleError`` after ``seconds``, or as soon as a component has ended.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if any(process.poll() is not None for process in self._components.values()):
                raise AirflowTroubleError(f"a part of Airflow ended: see {self.log}")
            try:
                if is_there():
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                pass  # the server does not answer yet
            time.sleep(0.5)
        raise AirflowTroubleError(f"waited {seconds:.0f} s for {what}: see {self.log}")

    def _get(self, path: str) -> Any:
        try:
            return self.ask("GET", path)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the REST API, and return the JSON of the answer; raise
        ``urllib.error.HTTPError`` for a refused request.
        """
        if not self._token:
            self._token = _ask("GET", f"{self.url}/auth/token", None, {})["access_token"]
        headers = {"Authorization": f"Bearer {self._token}"}
        return _ask(method, f"{self.url}/api/v2/{path}", body, headers)


def _ask(method: str, url: str, body: Any, headers: Mapping[str, str]) -> Any:
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, method=method)
    for name, value in {"Content-Type": "application/json", **headers}.items():
        asked.add_header(name, value)
    # Use no proxy of the shell, because all requests are to this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=30) as answer:
        return json.load(answer)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore further signals in the block, so that a second Ctrl-C does not leave a part of Airflow
    running.
    """
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDINGS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError):  # no process of the group is left
        os.killpg(group, number)


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind((HOST, 0))
        port: int = tried.getsockname()[1]
        return port


def _environment(home: Path, dags: Path, port: int) -> dict[str, str]:
    """Return the environment variables of Airflow, without the machine's own settings of
    Airflow.
    """
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
