"""Rows of a table in a SQL database, read through SQLAlchemy in columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import lakeformat as lake

if TYPE_CHECKING:
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["SqlRows"]

_ROWS_AT_A_TIME = 65_536
_PLAIN = {
    "BigInteger": "BIGINT",
    "SmallInteger": "SMALLINT",
    "Integer": "BIGINT",
    "Boolean": "BOOLEAN",
    "Double": "DOUBLE",
    "Float": "DOUBLE",
    "Date": "DATE",
    "Text": "STRING",
    "String": "STRING",
    "Uuid": "STRING",
    "JSON": "STRING",
    "LargeBinary": "BYTES",
}
_MOST_DIGITS = 38


class SqlRows:
    """All rows of one table, as of the moment the reading begins."""

    kinds: str | None = None

    def __init__(self, wanted: IngestRequest) -> None:
        assert wanted.jdbc_url is not None
        assert wanted.jdbc_table is not None
        self._engine = _connect(wanted.jdbc_url, dict(wanted.source_options or {}))
        self._name = wanted.jdbc_table
        self._table = self._reflected()

    def new_columns(self) -> Any:
        return [(column.name, _type_of(column)) for column in self._table.columns]

    def fitted(self, catalog: lake.Catalog, table: lake.Table, name: str) -> lake.Table:
        return table

    def batches(self, table: lake.Table) -> Iterator[pa.RecordBatch]:
        import sqlalchemy as sql
        from sqlalchemy.exc import SQLAlchemyError

        types = {field.name: field.type for field in table.schema.arrow_schema()}
        names = [column.name for column in self._table.columns]
        if strange := [name for name in names if name not in types]:
            raise lake.InvalidRequestError(
                f"{self._name} has columns that {table.location} has not: {', '.join(strange)}"
            )
        try:
            with self._engine.connect().execution_options(stream_results=True) as connection:
                chosen = [_chosen(each, types[each.name]) for each in self._table.columns]
                found = connection.execute(sql.select(*chosen))
                for rows in found.partitions(_ROWS_AT_A_TIME):
                    columns = zip(names, zip(*rows, strict=True), strict=True)
                    yield pa.RecordBatch.from_arrays(
                        [_array(name, values, types[name]) for name, values in columns],
                        names=names,
                    )
        except SQLAlchemyError as reason:
            raise _unavailable(reason) from None
        except ValueError as reason:  # of SQLAlchemy: SQLite keeps any text in a DATE
            raise lake.InvalidRequestError(
                f"{self._name} has a value that is none of its column's type: {reason}"
            ) from None

    def _reflected(self) -> Any:
        import sqlalchemy as sql
        from sqlalchemy.exc import NoSuchTableError, SQLAlchemyError

        schema, _, name = self._name.rpartition(".")
        try:
            table = sql.Table(
                name, sql.MetaData(), schema=schema or None, autoload_with=self._engine
            )
        except NoSuchTableError:
            raise lake.NotFoundError(f"the SQL database has no table {self._name!r}") from None
        except SQLAlchemyError as reason:
            raise _unavailable(reason) from None
        for column in table.columns:
            if isinstance(column.type, sql.Uuid):
                column.type.as_uuid = False  # texts, not objects of Python
        return table


def _connect(url: str, options: dict[str, str]) -> Any:
    try:
        import sqlalchemy as sql
    except ModuleNotFoundError:
        raise lake.UnsupportedError(
            "key 'jdbc_url' wants SQLAlchemy with engine 'python': pip install "
            "'airflow-provider-lake[jdbc]', or use engine 'spark'"
        ) from None
    try:
        address = sql.make_url(url)
        if "user" in options:
            address = address.set(username=options["user"])
        if "password" in options:
            address = address.set(password=options["password"])
        return sql.create_engine(address, hide_parameters=True)
    except (sql.exc.ArgumentError, ModuleNotFoundError) as reason:
        raise lake.InvalidRequestError(
            f"key 'jdbc_url' is no address of SQLAlchemy, or its driver is missing: "
            f"{type(reason).__name__}"
        ) from None


def _chosen(column: Any, wanted: pa.DataType) -> Any:
    """What is asked for: of JSON for a text the text itself, not what a driver makes of it."""
    import sqlalchemy as sql

    if isinstance(column.type, sql.JSON) and pa.types.is_string(wanted):
        return sql.cast(column, sql.Text).label(column.name)
    return column


def _array(name: str, values: tuple[Any, ...], wanted: pa.DataType) -> pa.Array:
    """Values as they are: told which type to make, Arrow cuts off fractions, times and zones."""
    try:
        if pa.types.is_floating(wanted) or pa.types.is_decimal(wanted):
            return pa.array(values, wanted)  # the nearest number, or one that is exact
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as reason:
        raise lake.InvalidRequestError(
            f"column {name!r} is {wanted} in the table, and a value is none: {reason}"
        ) from None


def _type_of(column: Any) -> str:
    """The type of a column that is made of one of SQL."""
    import sqlalchemy as sql

    kind = column.type
    if isinstance(kind, sql.Float):
        return "DOUBLE"
    if isinstance(kind, sql.Numeric):
        if kind.precision is None or kind.precision > _MOST_DIGITS:
            raise lake.InvalidRequestError(
                f"column {column.name!r} is a number of any length: create the table first"
            )
        return f"DECIMAL({kind.precision}, {kind.scale or 0})"
    if isinstance(kind, sql.DateTime):
        return "TIMESTAMP_LTZ(6)" if kind.timezone else "TIMESTAMP(6)"
    for parent in type(kind).__mro__:
        if parent.__name__ in _PLAIN:
            return _PLAIN[parent.__name__]
    raise lake.InvalidRequestError(
        f"column {column.name!r} is {kind} in SQL, for which there is no type: create the table "
        "first"
    )


def _unavailable(reason: Exception) -> lake.UnavailableError:
    """Messages of drivers may hold the address with its password: only their kind is told."""
    cause = getattr(reason, "orig", None) or reason
    return lake.UnavailableError(f"the SQL database did not answer: {type(cause).__name__}")
