# SPDX-License-Identifier: Apache-2.0
"""Runs operations of this library by the names and arguments of Paimon's procedures."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import lakeformat as lake
from spark_jobs.frames.procedures import PROCEDURES, Procedure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["call"]


def call(
    spark: SparkSession | None,
    procedure: str,
    *,
    warehouse: str | None = None,
    catalog_options: Mapping[str, str] | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """Run a procedure, as ``CALL sys.<procedure>(...)`` does in Paimon's SQL.

    Return the report as a dict, which is empty if the procedure has no report. Arguments have
    Paimon's names and forms: partitions are ``"dt=1,h=2;dt=3"``, times are text in UTC or epoch
    milliseconds. ``table`` is ``database.table``; ``warehouse`` and ``catalog_options`` are those
    of ``read_table``. If ``spark`` is None, give ``warehouse``; then this process does all work.

    Raises ``InvalidRequestError`` for an unknown procedure, for unknown or missing arguments, and
    if both ``spark`` and ``warehouse`` are missing. Raises ``NotFoundError`` for a missing table.
    """
    found = _find(procedure)
    _require_fit(found, arguments)
    given = {name: value for name, value in arguments.items() if value is not None}
    catalog = _catalog(spark, warehouse, catalog_options)
    if not found.of_table:
        return _plain(found.does(catalog, **given))
    table = catalog.table(given.pop("table"))
    where = [_executor(spark)] if found.in_tasks else []
    return _plain(found.does(table, *where, **given))


def _catalog(
    spark: SparkSession | None, warehouse: str | None, options: Mapping[str, str] | None
) -> lake.Catalog:
    if spark is None:
        if warehouse is None:
            raise lake.InvalidRequestError(
                "call() without a Spark session needs the argument 'warehouse', such as "
                "warehouse='/data/warehouse'"
            )
        return lake.open_catalog(warehouse, options=options)
    from spark_jobs.frames.tables import place_of

    place = place_of(spark, warehouse, options)
    return lake.open_catalog(place.warehouse, options=place.catalog_options)


def _executor(spark: SparkSession | None) -> Any:
    if spark is None:
        return None
    from spark_jobs.frames.executor import SparkExecutor

    return SparkExecutor(spark)


def _find(name: object) -> Procedure:
    wanted = str(name).lower().rpartition(".")[2]
    if wanted not in PROCEDURES:
        close = difflib.get_close_matches(wanted, PROCEDURES, n=1)
        meant = f": did you mean {close[0]!r}?" if close else "."
        raise lake.InvalidRequestError(
            f"procedure {name!r} does not exist{meant} The procedures are {', '.join(PROCEDURES)}"
        )
    return PROCEDURES[wanted]


def _require_fit(procedure: Procedure, given: Mapping[str, Any]) -> None:
    takes = procedure.arguments
    unknown = [name for name in given if name not in takes]
    lacking = [name for name in procedure.needed if given.get(name) is None]
    problems = [f"it has no argument {', '.join(map(repr, unknown))}"] if unknown else []
    problems += [f"it needs {', '.join(map(repr, lacking))}"] if lacking else []
    if problems:
        raise lake.InvalidRequestError(
            f"procedure {procedure.name!r}: {'; '.join(problems)}. It takes {', '.join(takes)}"
        )


def _plain(report: Any) -> dict[str, Any]:
    if report is None:
        return {}
    found: dict[str, Any] = report.to_dict()
    return found
