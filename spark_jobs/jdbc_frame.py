"""Rows of a table in a SQL database, read by Spark over JDBC."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import lakeformat as lake
from spark_jobs.spark_write import write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["JdbcFrame", "require_table_name"]

_PART = r"""(?:[\w$]+|"[^"]+"|`[^`]+`|\[[^\]]+\])"""
_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}")
"""A table with its schema and catalog, each as it is or quoted; no query, and no alias."""


def require_table_name(name: str) -> None:
    """Refuse a query in place of a table: Spark would run it, with the rights of its login."""
    if not _NAME.fullmatch(name):
        raise lake.NotFoundError(f"the SQL database has no table {name!r}")


class JdbcFrame:
    """All rows of one table; ``partitionColumn`` and its siblings let tasks share them."""

    def __init__(self, session: SparkSession, wanted: IngestRequest) -> None:
        self._frame = _loaded(session, wanted, dict(wanted.source_options or {}))

    def new_columns(self) -> Any:
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(self._frame.schema)

    def fitted(self, catalog: lake.Catalog, table: lake.Table, name: str) -> lake.Table:
        return table

    def written(self, table: lake.Table) -> list[lake.CommitMessage]:
        """The files of the rows, which nobody has committed yet."""
        return write_rows(self._frame, table)


def _loaded(session: SparkSession, wanted: IngestRequest, options: dict[str, str]) -> DataFrame:
    assert wanted.jdbc_table is not None
    require_table_name(wanted.jdbc_table)
    reader = session.read.format("jdbc").options(**options)
    try:
        return reader.options(url=wanted.jdbc_url, dbtable=wanted.jdbc_table).load()
    except Exception as reason:  # noqa: BLE001 - what drivers raise is of no common kind
        # What drivers say may hold the address with its password: only its kind is told.
        raise lake.UnavailableError(
            f"the SQL database did not answer, has no table {wanted.jdbc_table!r}, or its driver "
            f"is not on Spark's classpath: {type(reason).__name__}"
        ) from None
