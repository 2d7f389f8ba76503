# SPDX-License-Identifier: Apache-2.0
"""Runs one operation on many tables in turn. The error of one table does not stop the tables after
it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lakeformat.errors import LakeError, Reported, UnsupportedError

__all__ = ["Reported", "TableOutcome", "as_defect", "skipped_text", "table_by_table"]

_log = logging.getLogger(__name__)


R = TypeVar("R", bound=Reported)


@dataclass(frozen=True, slots=True)
class TableOutcome(Generic[R]):
    """The report or the error of the operation on one table, or the reason why the table was
    skipped.
    """

    table: str
    report: R | None = None
    error: LakeError | None = None
    """The error that stopped the operation on this table; None if it succeeded or the table was
    skipped.
    """
    skipped: str | None = None
    """The reason why the table was skipped: its format lacks the operation, or one of the arguments
    of the operation. None if the table was not skipped.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as a dict, ready for JSON.

        The report of a failed operation describes the work that was complete before the error. Only
        a skipped table has the member ``skipped``.
        """
        done = self.error.report if self.report is None and self.error is not None else self.report
        return {
            "table": self.table,
            "report": None if done is None else done.to_dict(),
            "error": None if self.error is None else f"{type(self.error).__name__}: {self.error}",
        } | ({} if self.skipped is None else {"skipped": self.skipped})


def table_by_table(
    names: Sequence[str],
    act: Callable[[str], R],
    *,
    began: Callable[[str], object] | None = None,
) -> Iterator[TableOutcome[R]]:
    """Call ``act`` with the name of each table, and yield a ``TableOutcome`` with report or error.

    ``began`` is called with the name before ``act``. An unexpected error becomes a ``LakeError``. A
    table is skipped if ``act`` raises an ``UnsupportedError`` with ``lacks``.
    """
    for name in names:
        if began is not None:
            began(name)
        try:
            yield TableOutcome(name, report=act(name))
        except UnsupportedError as error:
            lacks = error.lacks
            yield TableOutcome(name, error=None if lacks else error, skipped=lacks)
        except LakeError as error:
            yield TableOutcome(name, error=error)
        except Exception as error:  # noqa: BLE001 - a defect at one table must not end the run
            _log.exception("a defect of this library stopped the work on %s", name)
            yield TableOutcome(name, error=as_defect(error))


def skipped_text(outcomes: Sequence[TableOutcome[Any]]) -> str:
    """Return the number of skipped tables, and the name and reason of the first; "" if no
    table was skipped.
    """
    skipped = [each for each in outcomes if each.skipped is not None]
    if not skipped:
        return ""
    first = "" if len(skipped) == 1 else "the first is "
    return f"{len(skipped)} skipped: {first}{skipped[0].table}: {skipped[0].skipped}"


def as_defect(error: Exception) -> LakeError:
    """Return a ``LakeError`` that names an unexpected error as a defect of this library."""
    found = LakeError(
        f"a defect of this library: {type(error).__name__}: {error}. Report it with the traceback "
        "in the log"
    )
    found.__cause__ = error
    return found
