# SPDX-License-Identifier: Apache-2.0
"""Converts the rows that a function returns, and writes them into a table."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from lakeformat import CommitId, CommitReport, Table
    from lakeformat.tables.arguments import Conflict, Overwritten

__all__ = ["begun_batch", "columns_of", "commit_batch", "readable_rows", "write"]


def readable_rows(returned: Any, table: Table | None, kinds: str | None, function: str) -> Any:
    """Return rows that the library can write; a list of dicts becomes a table with the column types
    of ``table``.

    Raise ``InvalidRequestError``, which names ``function``, for None, a single value, a list of
    single values or tuples, or values that do not fit. Any other object is returned unchanged.
    ``kinds`` is the column with the kinds of rows.
    """
    from lakeformat import InvalidRequestError

    if returned is None:
        raise InvalidRequestError(
            f"function {function!r} returned None: return rows, or an empty list if there are none"
        )
    if isinstance(returned, str | bytes | int | float | Mapping):
        raise InvalidRequestError(
            f"function {function!r} returned a value of type {type(returned).__name__}: return "
            "the rows as a list of dicts, [{'column': value}], or as a DataFrame or Arrow table"
        )
    if not isinstance(returned, list | tuple):
        return returned
    others = {type(row).__name__ for row in returned if not isinstance(row, Mapping)}
    if wrong := others & {"tuple", "list", "str", "int", "float", "NoneType"}:
        raise InvalidRequestError(
            f"function {function!r} returned a list with a value of type {min(wrong)}: "
            "return a list of dicts, [{'column': value}], because a row names its columns"
        )
    if others:
        return returned
    return _from_dictionaries(returned, table, kinds, function)


def columns_of(rows: Any, kinds: str | None) -> tuple[pa.Schema, Any]:
    """Return the columns of ``rows`` without the column ``kinds``, and the rows to write.

    The caller must write the returned rows, not ``rows``: if ``rows`` is an iterator, this function
    reads its first batch, and returns another iterator that has all batches. An empty iterator has
    no columns.
    """
    if _is_spark_frame(rows):
        from pyspark.sql.pandas.types import to_arrow_schema

        return _without(to_arrow_schema(rows.schema), kinds), rows
    import pyarrow as pa

    if isinstance(rows, pa.Table | pa.RecordBatchReader):
        return _without(rows.schema, kinds), rows
    from lakeformat.rows.batches import to_batches

    batches = to_batches(rows)
    first = next(batches, None)
    if first is None:
        return pa.schema([]), rows
    is_read = isinstance(rows, Iterator)
    return _without(first.schema, kinds), chain([first], batches) if is_read else rows


def write(
    table: Table,
    rows: Any,
    *,
    kinds: str | None,
    overwrite: Overwritten | None,
    commit: CommitId,
    **order: Any,
) -> CommitReport:
    """Write rows in one commit, and return its report. If ``rows`` is a Spark DataFrame, Spark's
    tasks write it.

    ``order`` has the arguments ``read_snapshot`` and ``conflict``, if they are given. Raise
    ``InvalidRequestError`` for rows that do not fit the table, and ``CommitConflictError`` after
    repeated conflicts.
    """
    if not _is_spark_frame(rows):
        return table.write(rows, kinds, overwrite=overwrite, commit=commit, **order)
    from spark_jobs import write_table

    if overwrite is None or isinstance(overwrite, str):
        mode: Any = overwrite or "append"
        return write_table(rows, table, mode=mode, kinds=kinds, commit=commit, **order)
    return write_table(
        rows, table, mode="overwrite", partitions=overwrite, kinds=kinds, commit=commit, **order
    )


def begun_batch(
    table: Table | None, overwrite: Overwritten | None, conflict: Conflict | None
) -> AbstractContextManager[Any]:
    """Begin the batch of a Mixed table, and return the batch as a context manager.

    Call this before the function of the task computes its rows. The context yields None for a table
    of another format, for ``table=None``, and if neither ``overwrite`` nor ``conflict`` is given.
    """
    is_batch = overwrite is not None or conflict is not None
    if table is None or not is_batch or "end_batch" not in table.operations:
        return nullcontext()
    begun: AbstractContextManager[Any] = table.begin()
    return begun


def commit_batch(
    table: Table,
    batch: Any,
    rows: Any,
    *,
    kinds: str | None,
    overwrite: Overwritten | None,
    commit: CommitId,
) -> CommitReport:
    """Write rows in the one commit of a batch of a Mixed table, and return its report.

    If ``rows`` is a Spark DataFrame, Spark's tasks write it. Raise ``InvalidRequestError`` for
    ``kinds`` together with ``overwrite``.
    """
    if overwrite is not None and kinds is not None:
        from lakeformat import InvalidRequestError

        raise InvalidRequestError(
            "an overwrite stores every row, so it takes no kinds: leave out 'kinds' or 'overwrite'"
        )
    if _is_spark_frame(rows):
        from spark_jobs.frames.publish import publish
        from spark_jobs.frames.spark_write import in_order, write_rows

        order = in_order(table, None, None, None, batch)
        messages = write_rows(rows, table, kinds=kinds, overwrite=overwrite, order=order)
        return publish(table, messages, overwrite=overwrite, commit=commit, batch=batch)
    report: CommitReport
    if overwrite is None:
        report = batch.write(rows, kinds, commit=commit)
    else:
        report = batch.overwrite(rows, overwrite, commit=commit)
    return report


def _is_spark_frame(rows: Any) -> bool:
    """Return True for a Spark DataFrame, without importing pyspark."""
    spark = sys.modules.get("pyspark.sql")
    return spark is not None and isinstance(rows, spark.DataFrame)


def _from_dictionaries(
    rows: list[Any] | tuple[Any, ...], table: Table | None, kinds: str | None, function: str
) -> pa.Table:
    """Convert dicts to a table; a column that a dict lacks gets null. Raise
    ``InvalidRequestError`` for an unknown name, or a value that does not fit its column.
    """
    import pyarrow as pa

    from lakeformat import InvalidRequestError
    from lakeformat.types.closest import closest

    schema = None
    names = dict.fromkeys(name for row in rows for name in row)
    if table is not None:
        schema = table.schema.arrow_schema()
        if kinds is not None:
            schema = schema.append(pa.field(kinds, pa.string()))
        if unknown := [name for name in names if name not in schema.names]:
            raise InvalidRequestError(
                f"function {function!r} returned rows with unknown column {unknown[0]!r}: "
                f"{table.location} has the columns {', '.join(schema.names)}"
                f"{closest(unknown[0], schema.names)}"
            )
        # Empty dicts are rows of nulls; without a column Arrow would not count them.
        schema = pa.schema([field for field in schema if field.name in (names or schema.names)])
    elif rows and not names:
        raise InvalidRequestError(
            f"function {function!r} returned rows without any column: name the columns in each row"
        )
    # By column: from rows Arrow takes only the first row's names.
    fields = {name: None for name in names} if schema is None else {f.name: f.type for f in schema}
    read = pa.table(
        {
            name: _column(name, kind, [row.get(name) for row in rows], function)
            for name, kind in fields.items()
        },
        schema=schema,
    )
    _refuse_loss(rows, read, function)
    return read


def _column(name: str, kind: pa.DataType | None, values: list[Any], function: str) -> pa.Array:
    """Return the values of a column with the type ``kind``; None lets Arrow choose the type. Raise
    ``InvalidRequestError`` for a value of another type.
    """
    import pyarrow as pa

    from lakeformat import InvalidRequestError

    try:
        return pa.array(values, type=kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as reason:
        wanted = "values of one type" if kind is None else f"values of type {kind}"
        raise InvalidRequestError(
            f"function {function!r} returned rows that cannot be read: {reason}. Use {wanted} in "
            f"column {name!r}"
        ) from None


def _refuse_loss(rows: list[Any] | tuple[Any, ...], read: pa.Table, function: str) -> None:
    """Raise ``InvalidRequestError`` for values that Arrow has changed, such as 1.5 to 1, a
    timestamp to its day, or 1e300 to the infinity of a FLOAT.
    """
    from lakeformat import InvalidRequestError

    for field in read.schema:
        for number, kept in enumerate(read[field.name].to_pylist()):
            given = rows[number].get(field.name)
            if not _is_kept(given, kept, field.type):
                raise InvalidRequestError(
                    f"function {function!r} returned {given!r} for column {field.name!r} of row "
                    f"{number}, counted from 0, but the column has type {field.type} and would "
                    f"hold {kept!r}: return a value that fits"
                )


def _is_kept(given: Any, kept: Any, kind: pa.DataType) -> bool:
    """Return True if Arrow stored the value ``given`` without loss as ``kept``. Rounding to a FLOAT
    is no loss, but a finite value that became infinite is one.
    """
    import pyarrow.types as kinds

    if kept is None:
        return True
    if kinds.is_map(kind):
        pairs = given.items() if isinstance(given, Mapping) else given
        return all(
            _is_kept(key, kept_key, kind.key_type) and _is_kept(value, kept_value, kind.item_type)
            for (key, value), (kept_key, kept_value) in zip(pairs, kept, strict=True)
        )
    if kinds.is_struct(kind):
        members = dict(given)
        return members.keys() <= kept.keys() and all(
            _is_kept(value, kept[name], kind.field(name).type) for name, value in members.items()
        )
    if kinds.is_nested(kind):
        return all(
            _is_kept(value, kept_value, kind.value_type)
            for value, kept_value in zip(given, kept, strict=True)
        )
    if kinds.is_floating(kind):
        return not math.isinf(kept) or bool(given == kept)
    is_exact = kinds.is_integer(kind) or kinds.is_decimal(kind) or kinds.is_temporal(kind)
    return not is_exact or bool(given == kept)


def _without(schema: pa.Schema, kinds: str | None) -> pa.Schema:
    at = -1 if kinds is None else schema.get_field_index(kinds)
    return schema if at < 0 else schema.remove(at)
