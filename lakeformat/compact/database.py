"""Compacts many tables: those of a warehouse whose names match."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lakeformat.commit.identity import CommitId
from lakeformat.compact.compact import Tell
from lakeformat.compact.execute import Executor, where_to_work
from lakeformat.compact.report import CompactReport
from lakeformat.compact.supported import require_strategy
from lakeformat.compact.unit import CompactPlan
from lakeformat.compact.where import Idle, idle_millis
from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.read.predicate_filter import Where

__all__ = ["TableOutcome", "compact_tables", "matching_tables", "plan_tables"]


_log = logging.getLogger(__name__)


class Compactable(Protocol):
    """A table that compacts itself."""

    def compact(self, **how: Any) -> CompactReport:
        """Compact it."""
        ...

    def plan_compaction(self, **how: Any) -> CompactPlan:
        """What that would do."""
        ...


class Tables(Protocol):
    """A catalog, as far as this module needs it."""

    def list_databases(self) -> list[str]:
        """Their names."""
        ...

    def list_tables(self, database: str) -> list[str]:
        """The names of the tables of a database."""
        ...

    def table(self, name: str) -> Compactable:
        """The table of a name."""
        ...


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """What became of one table."""

    table: str
    report: CompactReport | None = None
    plan: CompactPlan | None = None
    """What would become of it, where nothing else was asked for."""
    error: LakeError | None = None
    """Why it was not compacted, or not all of it; the other tables are all the same."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "table": self.table,
            "report": None if self.report is None else self.report.to_dict(),
            **({} if self.plan is None else {"plan": self.plan.to_dict()}),
            "error": None if self.error is None else f"{type(self.error).__name__}: {self.error}",
        }


def matching_tables(
    catalog: Tables,
    *,
    databases: str = ".*",
    including: str = ".*",
    excluding: str | None = None,
) -> list[str]:
    """The tables ``database.table`` whose whole names match, by regular expressions.

    ``including`` and ``excluding`` are about ``database.table``, ``databases`` about the database.
    """
    database, wanted = _pattern("databases", databases), _pattern("including", including)
    unwanted = None if excluding is None else _pattern("excluding", excluding)
    names = [
        f"{name}.{table}"
        for name in catalog.list_databases()
        if database.fullmatch(name)
        for table in catalog.list_tables(name)
    ]
    return [
        name
        for name in names
        if wanted.fullmatch(name) and not (unwanted and unwanted.fullmatch(name))
    ]


def compact_tables(
    catalog: Tables,
    names: Sequence[str],
    *,
    strategy: str = "full",
    where: Where | None = None,
    idle: Idle | None = None,
    commit: CommitId | None = None,
    executor: str | Executor | None = None,
    tell: Tell | None = None,
    began: Callable[[str], None] | None = None,
) -> Iterator[TableOutcome]:
    """Compact one table after the other, each as ``Table.compact`` does; one that fails stops
    no other. ``began`` hears the name of each before it is compacted. The same ``commit`` serves
    all tables: each knows its own snapshots.
    """
    _require(strategy, idle)
    where_to_work(executor)

    def compact(name: str) -> TableOutcome:
        table = catalog.table(name)
        report = table.compact(
            strategy=strategy,
            where=where,
            idle=idle,
            commit=commit,
            executor=executor,
            tell=tell,
        )
        return TableOutcome(name, report=report)

    yield from _one_by_one(names, compact, began)


def plan_tables(
    catalog: Tables,
    names: Sequence[str],
    *,
    strategy: str = "full",
    where: Where | None = None,
    idle: Idle | None = None,
) -> Iterator[TableOutcome]:
    """What that would do with each table; nothing is changed."""
    _require(strategy, idle)

    def plan(name: str) -> TableOutcome:
        found = catalog.table(name).plan_compaction(strategy=strategy, where=where, idle=idle)
        return TableOutcome(name, plan=found)

    yield from _one_by_one(names, plan, None)


def _require(strategy: str, idle: Idle | None) -> None:
    """What is wrong for every table is said before the first one."""
    require_strategy(strategy)
    if idle is not None:
        idle_millis(idle)


def _one_by_one(
    names: Sequence[str],
    act: Callable[[str], TableOutcome],
    began: Callable[[str], None] | None,
) -> Iterator[TableOutcome]:
    for name in names:
        if began is not None:
            began(name)
        try:
            yield act(name)
        except LakeError as error:
            yield TableOutcome(name, error=error)
        except Exception as error:  # noqa: BLE001 - a defect at one table must not end the run
            _log.exception("the compaction of %s ended in a defect", name)
            yield TableOutcome(name, error=_defect(error))


def _defect(error: Exception) -> LakeError:
    found = LakeError(f"a defect of this library: {type(error).__name__}: {error}")
    found.__cause__ = error
    return found


def _pattern(name: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as reason:
        raise InvalidRequestError(
            f"{name} is a regular expression, got {text!r}: {reason}"
        ) from None
