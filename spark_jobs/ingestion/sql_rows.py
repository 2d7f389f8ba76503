# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of a table in a SQL database through SQLAlchemy, as Arrow columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import lakeformat as lake
from lakeformat.catalog.row_schema import row_schema
from lakeformat.types.arrow_types import to_arrow_type
from spark_jobs.ingestion.postgres_values import refuse_values_outside_the_calendar
from spark_jobs.ingestion.schema_change import changes_for_types
from spark_jobs.ingestion.sql_table import find_sql_table, unavailable

if TYPE_CHECKING:
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["SqlRows"]

_ROWS_AT_A_TIME = 65_536
_ALL_DIGITS = Context(prec=400)
"""A context with enough digits for every number that SQLite can store."""
_SCALE_IF_UNDECLARED = 10
_TOO_LARGE = {32: 2.0**128 - 2.0**103, 64: math.inf}
"""The least number that becomes infinite as FLOAT and as DOUBLE, by the bits of the type."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A SQL column, and the type that its values become in the lake."""

    column: Any
    type: pa.DataType
    is_cast: bool
    """True if key ``casts`` sets the type: then the values are cast after they are read."""

    @property
    def is_text(self) -> bool:
        return bool(pa.types.is_string(self.type))


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

        wanted = self._wanted(table)
        names = [each.column.name for each in wanted]
        row = 1
        try:
            with self._engine.connect().execution_options(stream_results=True) as connection:
                found = connection.execute(sql.select(*map(self._chosen, wanted)))
                for rows in found.partitions(_ROWS_AT_A_TIME):
                    columns = zip(wanted, zip(*rows, strict=True), strict=True)
                    arrays = [_array(each, values) for each, values in columns]
                    batch = pa.RecordBatch.from_arrays(arrays, names=names)
                    yield self._mapping.applied(batch, row)
                    row += batch.num_rows
        except SQLAlchemyError as reason:
            raise unavailable(reason) from None
        except ValueError as reason:  # of the driver, or of SQLAlchemy for a DATE of SQLite
            raise lake.InvalidRequestError(
                f"SQL table {self._source.asked!r} has a value that does not fit its column's "
                f"type: {reason}. Correct the value in the SQL database, or read a view that "
                "replaces it"
            ) from None

    def _wanted(self, table: lake.Table) -> list[_Wanted]:
        self._source.require_columns_of(table)
        there, casts = row_schema(table).arrow_schema(), self._mapping.casts
        return [
            _Wanted(column, to_arrow_type(casts[name]), is_cast=True)
            if name in casts
            else _Wanted(column, there.field(name).type, is_cast=False)
            for column, name in zip(self._source.columns, self._source.names, strict=True)
        ]

    def _chosen(self, wanted: _Wanted) -> Any:
        """Return the SQL expression that selects a column. A JSON column is selected as text if its
        type in the lake is a text, or if key ``casts`` sets this type.
        """
        import sqlalchemy as sql

        column = wanted.column
        if self._engine.name == "sqlite" and _is_decimal(column.type):
            # SQLAlchemy would read the numbers of SQLite as floats, which round large numbers.
            return sql.type_coerce(column, sql.types.NullType())
        read = _read_type(column.type, as_text=wanted.is_cast or wanted.is_text)
        return column if read is column.type else sql.cast(column, read).label(column.name)


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
        engine = sql.create_engine(address, poolclass=sql.NullPool, hide_parameters=True)
    except ModuleNotFoundError as reason:
        raise lake.InvalidRequestError(
            f"key 'jdbc_url' needs the Python module {reason.name!r}, which is not installed: "
            "install the driver with this module, or name another driver in the address, as in "
            f"{url.partition(':')[0].partition('+')[0]}+<driver>://host/db"
        ) from None
    except (sql.exc.ArgumentError, ValueError):  # the reason may quote a password
        raise lake.InvalidRequestError(
            "key 'jdbc_url' is not an address that SQLAlchemy can open: write one such as "
            "postgresql+psycopg2://host/db, or install the SQLAlchemy dialect of the database"
        ) from None
    refuse_values_outside_the_calendar(engine)
    return engine


def _read_type(kind: Any, *, as_text: bool) -> Any:
    """Return the SQL type for reading a column, also for an array or a domain. Return ``kind``
    itself if the column needs no cast.

    JSON and HSTORE are read as text if ``as_text``: Arrow would give each object the keys of all
    objects in the batch.
    """
    import sqlalchemy as sql
    from sqlalchemy.dialects import postgresql as pg

    base = _without_domain(kind)
    if as_text and isinstance(base, sql.JSON | pg.HSTORE):
        return sql.Text()
    if isinstance(base, sql.Uuid):
        base.as_uuid = False  # as text, not as Python objects
        return base
    if not isinstance(base, sql.ARRAY):
        return kind
    item = _item_type(base.item_type, as_text=as_text)
    if item is not base.item_type:
        return pg.ARRAY(item)
    return base if isinstance(item, sql.Uuid | sql.Enum) else kind


def _item_type(kind: Any, *, as_text: bool) -> Any:
    """Return the SQL type for reading the items of an array.

    Without a cast, SQLAlchemy would split some arrays into characters: arrays of a domain, and
    arrays of a type in ``unread``. So items of a type in ``unread`` are cast to text, and items of
    a domain to the type of the domain. But if the type of the domain is in ``partial`` and has no
    time zone, the items are cast to text instead, because SQLAlchemy does not know every detail of
    this type, such as its length.
    """
    import sqlalchemy as sql
    from sqlalchemy.dialects import postgresql as pg

    unread = (pg.BIT, pg.CITEXT, pg.MACADDR8, pg.MONEY, pg.REGCLASS, pg.TSQUERY, pg.TSVECTOR)
    partial = (sql.CHAR, sql.DateTime, sql.Time, sql.ARRAY, sql.types.NullType)
    item = _without_domain(_read_type(kind, as_text=as_text))
    is_partial = isinstance(kind, pg.DOMAIN) and isinstance(item, partial)
    if isinstance(item, unread) or (is_partial and not getattr(item, "timezone", False)):
        return sql.Text()
    return item


def _without_domain(kind: Any) -> Any:
    from sqlalchemy.dialects import postgresql as pg

    while isinstance(kind, pg.DOMAIN):
        kind = kind.data_type
    return kind


def _is_decimal(kind: Any) -> bool:
    import sqlalchemy as sql

    return isinstance(kind, sql.Numeric) and not isinstance(kind, sql.Float)


def _exact(kind: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of a SQL column of type ``kind``; in a decimal column, the numbers that
    SQLite stores become decimals.

    SQLite stores fractions as floats. So a decimal is rounded to the declared digits if this
    changes it by less than a millionth of the last digit. Otherwise it keeps all digits of the
    number.
    """
    if not _is_decimal(kind):
        return values
    last = Decimal(1).scaleb(-(_SCALE_IF_UNDECLARED if kind.scale is None else kind.scale))

    def decimal_of(value: Any) -> Any:
        if not isinstance(value, int | float) or not math.isfinite(value):
            return value
        exact = Decimal(repr(value))
        rounded = exact.quantize(last, context=_ALL_DIGITS)
        return rounded if abs(rounded - exact) < last / 1_000_000 else exact

    return tuple(map(decimal_of, values))


def _instants(values: Iterable[Any]) -> pa.DataType | None:
    """Return a timestamp type in UTC if the first value has a zone, else None.

    If the values are arrays, return the type of arrays of such timestamps. Without this type, Arrow
    would take the zone of the first value, and refuse a zone whose offset from UTC has seconds.
    """
    for value in values:
        if isinstance(value, list):
            if (items := _instants(value)) is not None:
                return pa.list_(items)
        elif value is not None:
            is_instant = isinstance(value, datetime) and value.tzinfo is not None
            return pa.timestamp("us", "UTC") if is_instant else None
    return None


def _items(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the values that are not null, also those in arrays."""
    for value in values:
        if isinstance(value, list):
            yield from _items(value)
        elif value is not None:
            yield value


def _type_of_items(kind: pa.DataType) -> pa.DataType:
    while pa.types.is_list(kind):
        kind = kind.value_type
    return kind


def _held_exactly(values: Iterable[Any], kind: pa.DataType) -> bool:
    """Return True if Arrow truncates no number when it converts the items of arrays to the type
    ``kind``. Even then, Arrow may raise an error for a number that does not fit.

    Return False if a value is not a number, or ``kind`` is not a type of numbers.
    """
    numbers: tuple[type, ...] = ()
    if pa.types.is_integer(kind):
        numbers = (int,)
    elif pa.types.is_decimal(kind):
        numbers = (int, Decimal)
    elif pa.types.is_float64(kind):
        numbers = (int, float, Decimal)
    return bool(numbers) and all(isinstance(each, numbers) for each in _items(values))


def _as_float(value: Any, limit: float) -> Any:
    """Return a decimal, and each decimal in an array, as the nearest float. Raise
    ``OverflowError`` if the absolute value of a finite number is ``limit`` or more.
    """
    if isinstance(value, list):
        return [_as_float(each, limit) for each in value]
    if not isinstance(value, Decimal | float):
        return value
    found = float(value)
    is_finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
    if abs(found) >= limit and is_finite:
        raise OverflowError(f"{value:.6g} is too large for the type of the column")
    return found


def _with_own_digits(value: Any) -> Any:
    """Return a decimal, and each decimal in an array, as text: Arrow would give all decimals of a
    batch as many digits as the longest has.
    """
    if isinstance(value, list):
        return [_with_own_digits(each) for each in value]
    return f"{value:f}" if isinstance(value, Decimal) else value


def _times(kind: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of a SQL column of type ``kind``, with texts parsed in an array of
    timestamps or times.

    Such an array has texts if its items have the type of a domain. Other values are returned
    unchanged.
    """
    import sqlalchemy as sql

    base = _without_domain(kind)
    item = _without_domain(base.item_type) if isinstance(base, sql.ARRAY) else None
    if not isinstance(item, sql.DateTime | sql.Time):
        return values
    parse = item.python_type.fromisoformat

    def time_of(value: Any) -> Any:
        if isinstance(value, list):
            return list(map(time_of, value))
        return parse(value) if isinstance(value, str) else value

    return tuple(map(time_of, values))


def _array(wanted: _Wanted, values: tuple[Any, ...]) -> pa.Array:
    """Return the values of a SQL column as an Arrow array; raise ``InvalidRequestError`` for values
    that do not fit.

    The result has the wanted type in two cases: if this is FLOAT, DOUBLE or DECIMAL and the column
    is not cast, or if each value is itself an array of numbers and the column is cast. Otherwise
    the result has the type that Arrow finds in the values, because a cast by Arrow would truncate
    fractions, times and zones.
    """
    name, kind = wanted.column.name, wanted.type
    items = _type_of_items(kind)
    is_float = pa.types.is_floating(items)
    is_exact = not wanted.is_cast and (pa.types.is_floating(kind) or pa.types.is_decimal(kind))
    if wanted.is_cast and pa.types.is_list(kind):  # no cast changes the numbers in an array
        is_exact = _held_exactly(values, items)
    values = _exact(wanted.column.type, values)
    try:
        # A number becomes the nearest FLOAT or DOUBLE, in an array the nearest DOUBLE, or the exact
        # DECIMAL. A FLOAT in an array is refused later if it would be rounded.
        if is_float:
            limit = _TOO_LARGE[items.bit_width]
            values = tuple(
                _as_float(each, limit) if isinstance(each, Decimal | float | list) else each
                for each in values
            )
        elif wanted.is_cast and pa.types.is_string(items):
            values = tuple(map(_with_own_digits, values))
        elif pa.types.is_temporal(items):
            values = _times(wanted.column.type, values)
        found = pa.array(values, kind if is_exact else _instants(values))
    except (pa.ArrowException, TypeError, OverflowError) as reason:
        decimals = (each for each in _items(values) if isinstance(each, Decimal))
        if (odd := next((each for each in decimals if not each.is_finite()), None)) is not None:
            raise lake.InvalidRequestError(
                f"column {name!r} has the number {odd}, which only FLOAT, DOUBLE and texts can "
                "hold: correct the value, or choose such a type for the column"
            ) from None
        if not is_exact and not isinstance(reason, OverflowError):
            raise lake.InvalidRequestError(
                f"the values of column {name!r} have no common type: {reason}. Read a view "
                "that casts the column to one type"
            ) from None
        raise lake.InvalidRequestError(
            f"a value of column {name!r} does not fit the type {kind}: {reason}. Change the value, "
            "or the type of the column"
        ) from None
    is_time = pa.types.is_time(_type_of_items(found.type))
    if is_time and any(each.tzinfo for each in _items(values)):
        raise lake.InvalidRequestError(
            f"column {name!r} has times with a zone, which TIME cannot hold: read a view that "
            "casts the column to a TIME without a zone, or to a text"
        )
    return found
