"""``lake`` in this process or on a terminal."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import DEFAULT, patch

import pytest
from typer.testing import CliRunner

import lakeformat as lake
import lakeformat.cli.app as program
from lakeformat.cli.app import app

__all__ = ["lake_ends", "lake_on_a_terminal", "lake_refuses", "lake_says"]


def lake_says(catalog: lake.Catalog, *words: str, code: int = 0, width: int | None = None) -> str:
    """Return the output of a command on a terminal with these columns; check its exit code."""
    environment = {} if width is None else {"COLUMNS": str(width)}
    shown = CliRunner().invoke(app, ["-w", catalog.location, *words], env=environment)
    assert shown.exit_code == code, shown.output or str(shown.exception)
    return shown.output


def lake_refuses(
    catalog: lake.Catalog, *words: str, error: type[lake.LakeError] = lake.InvalidRequestError
) -> str:
    """The sentence a command is refused with."""
    shown = CliRunner().invoke(app, ["-w", catalog.location, *words])
    assert isinstance(shown.exception, error), shown.output
    return str(shown.exception)


def lake_ends(*words: str) -> tuple[int, str, str]:
    """Run the whole program; return its exit code, stdout and stderr, which are no terminals."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    of_the_process = ("hide_pandas", "keep_freed_memory")  # this process runs other tests, too
    with (
        patch.multiple(program, **dict.fromkeys(of_the_process, DEFAULT)),
        patch("signal.signal"),
        patch.object(sys, "argv", ["lake", *words]),
        redirect_stdout(streams[0]),
        redirect_stderr(streams[1]),
        pytest.raises(SystemExit) as end,
    ):
        program.main()
    for stream in streams:
        stream.seek(0)
    return end.value.code, *(stream.read() for stream in streams)


def lake_on_a_terminal(warehouse: str, *words: str) -> tuple[str, str]:
    """Return the output to the pipe, and to the terminal."""
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-m", "lakeformat.cli", "-w", warehouse, *words]
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as done:
        os.close(theirs)
        seen = b""
        try:
            while more := os.read(terminal, 4096):
                seen += more
        except OSError:  # the terminal has lost its last writer
            pass
        os.close(terminal)
        piped, _ = done.communicate()
    assert done.returncode == 0, seen
    return piped.decode(), seen.decode()
