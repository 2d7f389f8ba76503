# SPDX-License-Identifier: Apache-2.0
"""Runs one operation on many tables, one after the other; after an error the next table follows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lakeformat.errors import LakeError, Reported

__all__ = ["Reported", "TableOutcome", "as_defect", "table_by_table"]

_log = logging.getLogger(__name__)


R = TypeVar("R", bound=Reported)


@dataclass(frozen=True, slots=True)
class TableOutcome(Generic[R]):
    """The report or the error of the operation on one table."""

    table: str
    report: R | None = None
    error: LakeError | None = None
    """The error that stopped the operation on this table; None if it succeeded."""

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as a dict, ready for JSON.

        An error may have a report of the work that was complete before it.
        """
        done = self.error.report if self.report is None and self.error is not None else self.report
        return {
            "table": self.table,
            "report": None if done is None else done.to_dict(),
            "error": None if self.error is None else f"{type(self.error).__name__}: {self.error}",
        }


def table_by_table(
    names: Sequence[str],
    act: Callable[[str], R],
    *,
    began: Callable[[str], object] | None = None,
) -> Iterator[TableOutcome[R]]:
    """Call ``act`` with the name of each table, and yield its report or error as outcome.

    ``began`` is called with each name before. An unexpected error becomes a ``LakeError``.
    """
    for name in names:
        if began is not None:
            began(name)
        try:
            yield TableOutcome(name, report=act(name))
        except LakeError as error:
            yield TableOutcome(name, error=error)
        except Exception as error:  # noqa: BLE001 - a defect at one table must not end the run
            _log.exception("a defect of this library stopped the work on %s", name)
            yield TableOutcome(name, error=as_defect(error))


def as_defect(error: Exception) -> LakeError:
    """Return a ``LakeError`` that names an unexpected error as a defect of this library."""
    found = LakeError(
        f"a defect of this library: {type(error).__name__}: {error}. Report it with the traceback "
        "in the log"
    )
    found.__cause__ = error
    return found
