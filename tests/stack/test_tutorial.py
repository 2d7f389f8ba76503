"""The tutorial in a clean folder: every command is typed into a shell as it is printed there.

Only the installation is left out, because these tests run in its result: ``bin/demo`` is
``bin/demo.py`` here.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from browser import Browser, find_chromium

from tests.tutorial_page import PAGE, ROOT, Command, SavedFile, shows, steps

END = "@@ ended with"
PORT = 8080
PATIENCE = 300

pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="needs a browser: apt-get install chromium"
)


class Shell:
    """A shell of a new user, whose home is an empty folder."""

    def __init__(self, home: Path, **settings: str) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "LAKE"))}
        self._process = subprocess.Popen(
            ["bash"],
            cwd=ROOT,
            env=kept | {"HOME": str(home), "COLUMNS": "160"} | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
            # A shell that runs the tests in the background has switched Ctrl-C off for them.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def start(self, command: str) -> None:
        """Type a command."""
        self._process.stdin.write(f"{command}\necho '{END}' $?\n")
        self._process.stdin.flush()

    def run(self, command: str) -> str:
        """Type a command, wait for its end, and return its output."""
        self.start(command)
        lines = []
        for line in self._process.stdout:
            if line.startswith(END):
                assert line == f"{END} 0\n", "".join([command, "\n", *lines])
                return "".join(lines)
            lines.append(line)
        raise AssertionError(f"the shell has ended: {command}\n{''.join(lines)}")

    def interrupt(self) -> None:
        """Type Ctrl-C, again every ten seconds, and leave the shell; raise if it does not end."""
        try:
            for _ in range(PATIENCE // 10):
                os.killpg(self._process.pid, signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    self._process.communicate(timeout=10)
                    return
            raise AssertionError("Airflow does not end with Ctrl-C")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()


@pytest.fixture
def port():
    """A free port, because 8080 may be in use on the machine of the tests."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return tried.getsockname()[1]


@pytest.fixture
def shell(tmp_path, port):
    shell = Shell(tmp_path, AIRFLOW__API__PORT=str(port))
    yield shell
    shell.interrupt()


def test_a_newcomer_ends_with_a_compacted_table_and_its_page(shell, tmp_path, port):
    *work, last = steps()
    for step in work:
        if isinstance(step, SavedFile):
            (tmp_path / "lake-tutorial" / step.name).write_text(step.text)
            continue
        demo = f"{sys.executable} bin/demo.py --folder {tmp_path / 'demo'}"
        output = shell.run(step.text.replace("bin/demo", demo))
        assert shows(output, step.shown), f"{step.text}\n{output}"
    assert last == Command("airflow standalone", "")
    shell.start(last.text)

    [address] = re.findall(rf"<(http://localhost:{PORT}\S+)>", PAGE.read_text())
    with Browser(tmp_path) as browser:
        wait_for_answer(port)
        browser.open(address.replace(str(PORT), str(port)))
        page = browser.wait_for_text("COMPACT", seconds=PATIENCE)

    assert "healthy" in page


def wait_for_answer(port: int) -> None:
    """Return when Airflow answers."""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise AssertionError("Airflow does not answer")
