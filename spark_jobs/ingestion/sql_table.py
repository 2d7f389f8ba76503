# SPDX-License-Identifier: Apache-2.0
"""A table in a SQL database, as SQLAlchemy describes it: its name, its columns and their types."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import lakeformat as lake
from lakeformat.catalog.row_schema import row_schema
from lakeformat.files.foreign.column_mapping import ColumnMapping
from lakeformat.types.type_text import parse_type, type_to_sql
from lakeformat.types.types import with_nullability

if TYPE_CHECKING:
    from sqlalchemy import Engine, Table
    from sqlalchemy.engine import Inspector

    from lakeformat.types.types import DataType

__all__ = ["SqlTable", "find_sql_table", "no_table", "require_table_name", "unavailable"]

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
_PART = r"""(?:[\w$]+|"(?:[^"]|"")+"|`(?:[^`]|``)+`|\[[^\]]+\])"""
_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}")
"""A table name with optional schema and catalog, each plain or quoted; queries and aliases do not
match.
"""


class SqlTable:
    """An existing table or view, with the name in the request and the names that its columns have
    in the lake.
    """

    def __init__(self, asked: str, table: Table, mapping: ColumnMapping, database: str) -> None:
        self.asked = asked
        self.columns = list(table.columns)
        self.names = mapping.names([each.name for each in self.columns])
        self._mapping = mapping
        self._table = table
        self._database = database

    @property
    def quoted(self) -> str:
        """The name of the table with its schema, both quoted as in standard SQL."""
        parts = (self._table.schema, self._table.name)
        return ".".join('"' + part.replace('"', '""') + '"' for part in parts if part)

    @property
    def unbounded_numbers(self) -> list[str]:
        """The names of decimal columns without a precision, or with more than 38 digits."""
        return [each.name for each in self.columns if _is_unbounded(each.type)]

    def new_columns(self) -> list[tuple[str, str]]:
        """Return the name and the SQL type of each column of a new lake table; raise
        ``InvalidRequestError`` for a type without an equivalent.
        """
        return [
            (
                name,
                type_to_sql(with_nullability(self._mapping.casts[name], nullable=True))
                if name in self._mapping.casts
                else _type_of(column),
            )
            for name, column in zip(self.names, self.columns, strict=True)
        ]

    def types_for(self, table: lake.Table) -> dict[str, DataType]:
        """Return the types of the columns, by the names that they have in ``table``.

        If a SQL type has no equivalent, an existing column is left out; a new column raises
        ``InvalidRequestError``.
        """
        there = {field.name for field in row_schema(table).fields}
        found: dict[str, DataType] = {}
        for name, column in zip(self.names, self.columns, strict=True):
            if name in self._mapping.casts:
                found[name] = self._mapping.casts[name]
                continue
            with suppress(lake.InvalidRequestError) if name in there else nullcontext():
                is_int = name in there and self._is_int(column.type)
                found[name] = parse_type("INT" if is_int else _type_of(column))
        return found

    def _is_int(self, kind: Any) -> bool:
        """Return True for INTEGER of PostgreSQL, which has 32 bits. INTEGER of SQLite has up to 64
        bits.
        """
        import sqlalchemy as sql

        return self._database == "postgresql" and isinstance(kind, sql.INTEGER)

    def require_columns_of(self, table: lake.Table) -> None:
        """Raise ``InvalidRequestError`` if the SQL table has columns that ``table`` lacks."""
        known = {field.name for field in row_schema(table).fields}
        if strange := [name for name in self.names if name not in known]:
            raise lake.InvalidRequestError(
                f"SQL table {self.asked!r} has columns that {table.location} does not have: "
                f"{', '.join(strange)}. Add them to the table with on_schema_change='add', or read "
                "a view without them"
            )


def find_sql_table(engine: Engine, name: str, mapping: ColumnMapping) -> SqlTable:
    """Return the table or view with this name, which is looked up and never executed as SQL.

    A part of the name without quotes also matches a name that differs only by case, if exactly one
    such name exists. Raises ``NotFoundError`` with the nearest name, and ``UnavailableError`` if
    the database does not answer.
    """
    import sqlalchemy as sql
    from sqlalchemy.exc import NoSuchTableError, SQLAlchemyError

    schema, table = _schema_and_table(name, engine.url.database)
    try:
        return _reflected(engine, name, schema.text if schema else None, table.text, mapping)
    except NoSuchTableError:
        failed = None
    except SQLAlchemyError as reason:
        if schema is None:
            raise unavailable(reason) from None
        failed = reason  # SQLite raises this if the schema does not exist
    try:
        inspector = sql.inspect(engine)
        near = _nearest(inspector, schema, table)
        if near is None or not near.is_meant:
            if failed is not None and schema and inspector.has_schema(schema.text):
                raise unavailable(failed)
            raise no_table(name, near.text if near else None)
        return _reflected(engine, name, near.schema, near.table, mapping)
    except SQLAlchemyError as reason:
        raise unavailable(reason) from None


def require_table_name(name: str) -> None:
    """Raise ``NotFoundError`` unless the text is a table name, plain or quoted: Spark would run
    other text as a query, with the rights of the login.
    """
    if not _NAME.fullmatch(name):
        raise no_table(name)


def no_table(name: str, near: str | None = None) -> lake.NotFoundError:
    """Return the ``NotFoundError`` for a missing table; ``near`` is a similar name that exists, or
    None.
    """
    advice = f"did you mean {near!r}?" if near else "correct 'jdbc_table', such as 'schema.table'"
    return lake.NotFoundError(f"the SQL database has no table {name!r}: {advice}")


def unavailable(reason: Exception) -> lake.UnavailableError:
    """Return the ``UnavailableError`` for a database, without the driver's message, which may
    contain a password.
    """
    cause = getattr(reason, "orig", None) or reason
    return lake.UnavailableError(
        f"the SQL database did not answer, or refused the query ({type(cause).__name__}): check "
        "its address, the login and its permissions, and the network, then retry"
    )


@dataclass(frozen=True, slots=True)
class _NamePart:
    text: str
    is_quoted: bool

    def among(self, known: Iterable[str]) -> str | None:
        """Return the name in ``known`` that this part matches; None if there is none, or if several
        differ only by case.
        """
        names = list(known)
        if self.text in names or self.is_quoted:
            return self.text if self.text in names else None
        alike = [each for each in names if each.casefold() == self.text.casefold()]
        return alike[0] if len(alike) == 1 else None


@dataclass(frozen=True, slots=True)
class _SimilarTable:
    schema: str | None
    table: str
    is_meant: bool

    @property
    def text(self) -> str:
        return self.table if self.schema is None else f"{self.schema}.{self.table}"


def _schema_and_table(name: str, database: str | None) -> tuple[_NamePart | None, _NamePart]:
    if not _NAME.fullmatch(name):  # a name with spaces, or an empty name, is compared unchanged
        schema, _, table = name.rpartition(".")
        return _NamePart(schema, True) if schema else None, _NamePart(table, True)
    *before, table_part = [_part(each) for each in re.findall(_PART, name)]
    if len(before) > 1 and before[0].text == database:
        del before[0]
    if not before:
        return None, table_part
    is_quoted = any(each.is_quoted for each in before)
    return _NamePart(".".join(each.text for each in before), is_quoted), table_part


def _part(text: str) -> _NamePart:
    closing = {'"': '"', "`": "`", "[": "]"}.get(text[0])
    if closing is None:
        return _NamePart(text, is_quoted=False)
    return _NamePart(text[1:-1].replace(closing * 2, closing), is_quoted=True)


def _reflected(
    engine: Engine, asked: str, schema: str | None, name: str, mapping: ColumnMapping
) -> SqlTable:
    import sqlalchemy as sql

    table = sql.Table(name, sql.MetaData(), schema=schema, autoload_with=engine, resolve_fks=False)
    return SqlTable(asked, table, mapping, engine.name)


def _nearest(
    inspector: Inspector, schema: _NamePart | None, table: _NamePart
) -> _SimilarTable | None:
    """Return the table that matches the name, else a table with a similar name, else None."""
    found = None
    if schema is not None:
        schemas = inspector.get_schema_names()
        found = schema.among(schemas)
        if found is None:
            close = _close(schema.text, schemas)
            has_it = close is not None and table.text in _names(inspector, close)
            return _SimilarTable(close, table.text, is_meant=False) if has_it else None
    names = _names(inspector, found)
    if (meant := table.among(names)) is not None:
        return _SimilarTable(found, meant, is_meant=True)
    close = _close(table.text, names)
    return None if close is None else _SimilarTable(found, close, is_meant=False)


def _close(text: str, names: Iterable[str]) -> str | None:
    folded = {name.casefold(): name for name in names}
    found = get_close_matches(text.casefold(), folded, n=1)
    return folded[found[0]] if found else None


def _names(inspector: Inspector, schema: str | None) -> list[str]:
    names = [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]
    try:
        return [*names, *inspector.get_materialized_view_names(schema)]
    except NotImplementedError:  # the database has none
        return names


def _is_unbounded(kind: Any) -> bool:
    import sqlalchemy as sql

    return (
        isinstance(kind, sql.Numeric)
        and not isinstance(kind, sql.Float)
        and (kind.precision is None or _digits(kind) > _MOST_DIGITS)
    )


def _digits(kind: Any) -> int:
    """Return the number of digits that a decimal type holds. A scale below 0 or above the
    precision adds zeros: NUMERIC(5, -2) holds 9999900, and NUMERIC(3, 5) holds 0.00999.
    """
    scale = kind.scale or 0
    return int(max(kind.precision - min(scale, 0), scale))


def _type_of(column: Any) -> str:
    """Return the SQL type in the lake for a column of a SQL table; raise ``InvalidRequestError`` if
    there is no equivalent.
    """
    import sqlalchemy as sql

    kind = column.type
    if _is_unbounded(kind):
        raise lake.InvalidRequestError(
            f"column {column.name!r} is a number without a declared precision, or with more than "
            f"{_MOST_DIGITS} digits: set its type in key 'casts', such as 'DECIMAL(20, 4)', or "
            "create the table, or this column of it, before the ingestion"
        )
    if isinstance(kind, sql.Float):
        return "DOUBLE"
    if isinstance(kind, sql.Numeric):
        return f"DECIMAL({_digits(kind)}, {max(kind.scale or 0, 0)})"
    if isinstance(kind, sql.DateTime):
        return "TIMESTAMP_LTZ(6)" if kind.timezone else "TIMESTAMP(6)"
    for parent in type(kind).__mro__:
        if parent.__name__ in _PLAIN:
            return _PLAIN[parent.__name__]
    raise lake.InvalidRequestError(
        f"column {column.name!r} has the SQL type {kind}, which has no equivalent in a lake table: "
        "set its type in key 'casts', or create the table, or this column of it, before the "
        "ingestion"
    )
