"""Several Python processes that start their work at one moment."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


@contextmanager
def processes(commands):
    """Python processes that have reported that they are ready; killed at the end."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", *command],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield running
    finally:
        for process in running:
            process.kill()
            process.communicate()
