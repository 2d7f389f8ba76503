# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of long work in one line on stderr, if stderr is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["counting", "counting_rows", "files_done", "progress_line", "progressing"]


@contextmanager
def progress_line(begins: str, *, bar: bool = False) -> Iterator[Callable[..., Any] | None]:
    """Yield a function that updates the progress line; None if stderr is not a terminal.

    ``begins`` is the first text. The function takes ``description``, and with ``bar`` also
    ``total`` and ``completed``.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}")
    parts = (text, BarColumn()) if bar else (SpinnerColumn(), text)
    # Output to the same terminal is printed above the line; output to a file is not redirected.
    with Progress(
        *parts,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
    ) as progress:
        yield partial(progress.update, progress.add_task(begins, total=None))


def progressing(batches: Iterator[pa.RecordBatch], what: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches unchanged, and show the number of their rows so far, after the text
    ``what``.
    """
    with progress_line(what) as update:
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            if update is not None:
                update(description=f"{what}: {rows:,} rows")
            yield batch


@contextmanager
def counting(begins: str, counted: str) -> Iterator[Callable[[], None] | None]:
    """Yield a function to call for each file; None if stderr is not a terminal.

    The function shows the number of calls, followed by the noun ``counted``. ``begins`` is shown
    before the first call.
    """
    with progress_line(begins) as update:
        if update is None:
            yield None
            return
        count = 0

        def step() -> None:
            nonlocal count
            count += 1
            update(description=f"{count:,} {counted}")

        yield step


@contextmanager
def counting_rows(what: str) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that shows a number of rows after ``what``; None if stderr is not a
    terminal.
    """
    with progress_line(what) as update:
        if update is None:
            yield None
            return
        yield lambda rows: update(description=f"{what}: {rows:,} rows")


@contextmanager
def files_done() -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function that shows a progress bar; None if stderr is not a terminal.

    The function takes the number of all files, and the number of files that are done.
    """
    with progress_line("planning", bar=True) as update:
        if update is None:
            yield None
            return

        def on_progress(total: int, done: int) -> None:
            update(description=f"{done:,} of {total:,} files", total=total, completed=done)

        yield on_progress
