# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of a table in a SQL database through SQLAlchemy, as Arrow columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import lakeformat as lake
from lakeformat.catalog.row_schema import row_schema
from spark_jobs.ingestion.schema_change import changes_for_types
from spark_jobs.ingestion.sql_table import find_sql_table, unavailable

if TYPE_CHECKING:
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["SqlRows"]

_ROWS_AT_A_TIME = 65_536


class SqlRows:
    """The rows that a SQL table has when the read starts.

    Raises ``NotFoundError`` for a missing table, and ``UnavailableError`` if the database does not
    answer.
    """

    kinds: str | None = None

    def __init__(self, wanted: IngestRequest) -> None:
        assert wanted.jdbc_url is not None
        assert wanted.jdbc_table is not None
        self._engine = _connect(wanted.jdbc_url, dict(wanted.source_options or {}))
        self._on_change = wanted.on_schema_change
        self._mapping = wanted.mapping
        self._source = find_sql_table(self._engine, wanted.jdbc_table, wanted.mapping)

    def new_columns(self) -> Any:
        return self._source.new_columns()

    def changes_for(self, table: lake.Table) -> list[lake.SchemaChange]:
        """Return the schema changes that the table needs before it can take the rows. Raise
        ``InvalidRequestError`` for a new column that the table cannot get.
        """
        found = self._source.types_for(table)
        return changes_for_types(table, found, self._on_change)

    def batches(self, table: lake.Table) -> Iterator[pa.RecordBatch]:
        import sqlalchemy as sql
        from sqlalchemy.exc import SQLAlchemyError

        names = [column.name for column in self._source.columns]
        types = dict.fromkeys(self._mapping.cast_sources, pa.string())
        for field in row_schema(table).arrow_schema():
            types.setdefault(self._mapping.sources.get(field.name, field.name), field.type)
        self._source.require_columns_of(table)
        row = 1
        try:
            with self._engine.connect().execution_options(stream_results=True) as connection:
                chosen = [_chosen(each, types[each.name]) for each in self._source.columns]
                found = connection.execute(sql.select(*chosen))
                for rows in found.partitions(_ROWS_AT_A_TIME):
                    columns = zip(names, zip(*rows, strict=True), strict=True)
                    batch = pa.RecordBatch.from_arrays(
                        [_array(name, values, types[name]) for name, values in columns],
                        names=names,
                    )
                    yield self._mapping.applied(batch, row)
                    row += batch.num_rows
        except SQLAlchemyError as reason:
            raise unavailable(reason) from None
        except ValueError as reason:  # raised by SQLAlchemy: SQLite allows any text in a DATE
            raise lake.InvalidRequestError(
                f"SQL table {self._source.asked!r} has a value that does not fit its column's "
                f"type: {reason}. Correct the value in the SQL database"
            ) from None


def _connect(url: str, options: dict[str, str]) -> Any:
    try:
        import sqlalchemy as sql
    except ModuleNotFoundError:
        raise lake.UnsupportedError(
            "key 'jdbc_url' needs SQLAlchemy with engine 'python': run pip install "
            "'airflow-provider-lake[jdbc]', or use engine 'spark'"
        ) from None
    try:
        address = sql.make_url(url)
        if "user" in options:
            address = address.set(username=options["user"])
        if "password" in options:
            address = address.set(password=options["password"])
        # A pool would keep the connection open after the rows are read.
        return sql.create_engine(address, poolclass=sql.NullPool, hide_parameters=True)
    except ModuleNotFoundError as reason:
        raise lake.InvalidRequestError(
            f"key 'jdbc_url' needs the Python module {reason.name!r}, which is not installed: "
            "install the driver with this module, or name another driver in the address, as in "
            f"{url.partition(':')[0].partition('+')[0]}+<driver>://host/db"
        ) from None
    except sql.exc.ArgumentError:
        raise lake.InvalidRequestError(
            "key 'jdbc_url' is not an address that SQLAlchemy can open: write one such as "
            "postgresql+psycopg2://host/db, or install the SQLAlchemy dialect of the database"
        ) from None


def _chosen(column: Any, wanted: pa.DataType) -> Any:
    """Return the SQL expression that selects ``column``. A JSON column is cast to text if the type
    ``wanted`` is a string.
    """
    import sqlalchemy as sql

    if isinstance(column.type, sql.Uuid):
        column.type.as_uuid = False  # as text, not as Python objects
    if isinstance(column.type, sql.JSON) and pa.types.is_string(wanted):
        return sql.cast(column, sql.Text).label(column.name)
    return column


def _array(name: str, values: tuple[Any, ...], wanted: pa.DataType) -> pa.Array:
    """Return the values of a SQL column as an array, with the type ``wanted`` if this is FLOAT,
    DOUBLE or DECIMAL. Otherwise the values keep the type that Arrow finds, because a cast by Arrow
    would truncate fractions, times and zones. Raise ``InvalidRequestError`` for values that do not
    fit.
    """
    is_cast = pa.types.is_floating(wanted) or pa.types.is_decimal(wanted)
    try:
        # A number becomes the nearest FLOAT or DOUBLE, or the exact DECIMAL.
        return pa.array(values, wanted) if is_cast else pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as reason:
        if not is_cast:
            raise lake.InvalidRequestError(
                f"the values of column {name!r} have no common type: {reason}. Read a view "
                "that casts the column to one type"
            ) from None
        raise lake.InvalidRequestError(
            f"a value of column {name!r} does not fit the table's type {wanted}: {reason}. Change "
            "the value, or the type of the column"
        ) from None
