"""A line on stderr that tells how far long work has come; only people see it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["counting", "progressing"]


def progressing(batches: Iterator[pa.RecordBatch], what: str) -> Iterator[pa.RecordBatch]:
    """The same batches; a terminal shows how many rows have passed."""
    if not sys.stderr.isatty():
        yield from batches
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    parts = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as progress:
        task, rows = progress.add_task(what), 0
        for batch in batches:
            rows += batch.num_rows
            progress.update(task, description=f"{what}: {rows:,} rows")
            yield batch


@contextmanager
def counting(begins: str, counted: str) -> Iterator[Callable[[], None] | None]:
    """What to call for each file; a terminal shows what is done, and how many there are by now."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    parts = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(begins, total=None)
        count = 0

        def step() -> None:
            nonlocal count
            count += 1
            progress.update(task, description=f"{count:,} {counted}")

        yield step
