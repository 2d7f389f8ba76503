"""A line on stderr that tells how far long work has come; only people see it."""

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
    """What changes the line: ``description``, and of a bar ``total`` and ``completed``.

    None where no terminal shows it.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}")
    parts = (text, BarColumn()) if bar else (SpinnerColumn(), text)
    # What is printed meanwhile goes above the line; into a file or a pipe it has to go itself.
    with Progress(
        *parts,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
    ) as progress:
        yield partial(progress.update, progress.add_task(begins, total=None))


def progressing(batches: Iterator[pa.RecordBatch], what: str) -> Iterator[pa.RecordBatch]:
    """The same batches; a terminal shows how many rows have passed."""
    with progress_line(what) as update:
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            if update is not None:
                update(description=f"{what}: {rows:,} rows")
            yield batch


@contextmanager
def counting(begins: str, counted: str) -> Iterator[Callable[[], None] | None]:
    """What to call for each file; a terminal shows what is done, and how many there are by now."""
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
    """What hears how many rows there are by now; only where a terminal shows it."""
    with progress_line(what) as update:
        if update is None:
            yield None
            return
        yield lambda rows: update(description=f"{what}: {rows:,} rows")


@contextmanager
def files_done() -> Iterator[Callable[[int, int], None] | None]:
    """What hears how many files there are, and how many of them are done: a bar."""
    with progress_line("planning", bar=True) as update:
        if update is None:
            yield None
            return

        def tell(total: int, done: int) -> None:
            update(description=f"{done:,} of {total:,} files", total=total, completed=done)

        yield tell
