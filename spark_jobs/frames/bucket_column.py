# SPDX-License-Identifier: Apache-2.0
"""The bucket of each row as a Spark column, equal to the buckets of
``lakeformat.paimon.bucketing``.

For a key of at most 8 columns, all NOT NULL and of type INT, BIGINT or DATE, the JVM computes the
default bucket function in steps. Each step is a separate projection, because Spark computes a
column twice if one expression uses it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf

from lakeformat import TableSchema
from lakeformat.paimon.bucketing import BucketFunction, bucket_function
from lakeformat.types.types import AtomicType, DataField, TypeName
from spark_jobs.frames.conditions import column_named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["bucket_key", "with_bucket"]

_WORDS = {TypeName.INT: 1, TypeName.DATE: 1, TypeName.BIGINT: 2}
_MASK = 0xFFFFFFFF
_C1, _C2, _ADD = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_FINAL_1, _FINAL_2 = 0x85EBCA6B, 0xC2B2AE35
_SEED = 42
_MOST_COLUMNS = 8
"""The largest number of key columns for which the JVM computes the bucket."""


def bucket_key(schema: TableSchema) -> list[DataField]:
    """Return the columns that determine the bucket, in order: the option ``bucket-key``, else the
    primary key without partition columns.
    """
    names = schema.table_options.bucket_key or [field.name for field in schema.key_fields]
    by_name = {field.name: field for field in schema.fields}
    return [by_name[name] for name in names]


def with_bucket(
    frame: DataFrame, schema: TableSchema, name: str, given: BucketFunction | None = None
) -> DataFrame:
    """Return the rows with their bucket in a new INT column ``name``. Key columns must have the
    types of the table.

    The function ``given`` replaces the bucket function of the schema.
    """
    options, key = schema.table_options, bucket_key(schema)
    if options.bucket == 1:
        return frame.withColumn(name, sql.lit(0))
    types = [field.type for field in key]
    is_counted = all(isinstance(t, AtomicType) and t.name in _WORDS for t in types)
    has_nulls = any(field.type.nullable for field in key)
    if given is None and is_counted and not has_nulls and len(key) <= _MOST_COLUMNS:
        if options.bucket_function == "default":
            return _with_murmur(frame, key, options.bucket, name)
        if options.bucket_function == "mod":
            divisor = sql.lit(options.bucket).cast("bigint")
            number = _as_number(key[0]).cast("bigint")
            return frame.withColumn(name, sql.pmod(number, divisor).cast("int"))
    function = given or bucket_function(options.bucket_function, types, options.bucket)
    columns = [column_named(field.name) for field in key]
    make: Any = arrow_udf  # pyspark's type hints lack functions of several arrays
    return frame.withColumn(name, make(_in_tasks(function), "int")(*columns))


def _in_tasks(function: BucketFunction) -> Callable[..., pa.Array]:
    def bucket(*columns: pa.Array) -> pa.Array:
        return pa.array(function(columns), pa.int32())

    return bucket


def _with_murmur(frame: DataFrame, key: Sequence[DataField], buckets: int, name: str) -> DataFrame:
    columns = frame.columns
    words = [word for field in key for word in _words(field)]
    taken = [f"{name}_{position}" for position in range(len(words))]
    hashed = f"{name}_hash"
    multiplied = zip(taken, words, strict=True)
    frame = frame.withColumns(
        {to: _multiply(word, _C1) for to, word in multiplied if word is not None}
    )
    frame = frame.withColumns(
        {
            to: _multiply(_rotate(sql.col(to), 15), _C2)
            for to, word in zip(taken, words, strict=True)
            if word is not None
        }
    )
    state: Column = sql.lit(_after_header())
    for to, word in zip(taken, words, strict=True):
        mixed = state if word is None else state.bitwiseXOR(sql.col(to))
        frame = frame.withColumn(hashed, (_rotate(mixed, 13) * 5 + _ADD).bitwiseAND(_MASK))
        state = sql.col(hashed)
    state = state.bitwiseXOR(8 + 8 * len(key))
    for shift, factor in ((16, _FINAL_1), (13, _FINAL_2)):
        folded = state.bitwiseXOR(sql.shiftright(state, shift))
        frame = frame.withColumn(hashed, _multiply(folded, factor))
        state = sql.col(hashed)
    frame = frame.withColumn(hashed, state.bitwiseXOR(sql.shiftright(state, 16)))
    # Java's remainder has the sign of the hash, and its absolute value is taken.
    size = sql.when(state > _MASK >> 1, sql.lit(_MASK + 1) - state).otherwise(state)
    frame = frame.withColumn(name, (size % buckets).cast("int"))
    return frame.select(*map(column_named, [*columns, name]))


def _words(field: DataField) -> list[Column | None]:
    """Return the two 32-bit words of a field in a binary row; None stands for a word of zeros."""
    number = _as_number(field).cast("bigint")
    low = number.bitwiseAND(_MASK)
    assert isinstance(field.type, AtomicType)
    if _WORDS[field.type.name] == 1:
        return [low, None]
    return [low, sql.shiftrightunsigned(number, 32)]


def _as_number(field: DataField) -> Column:
    column = column_named(field.name)
    is_date = isinstance(field.type, AtomicType) and field.type.name is TypeName.DATE
    return sql.unix_date(column) if is_date else column


def _multiply(word: Column, factor: int) -> Column:
    """Return the low 32 bits of the product.

    They come from two partial products below 2**63, because a whole product may overflow.
    """
    low = word.bitwiseAND(0xFFFF) * sql.lit(factor).cast("bigint")
    high = (sql.shiftright(word, 16) * sql.lit(factor).cast("bigint")).bitwiseAND(0xFFFF)
    return (low + sql.shiftleft(high, 16)).bitwiseAND(_MASK)


def _rotate(word: Column, bits: int) -> Column:
    around = sql.shiftleft(word, bits).bitwiseOR(sql.shiftright(word, 32 - bits))
    return around.bitwiseAND(_MASK)


def _after_header() -> int:
    """Return the state of the hash after the two zero words of a row's header."""
    state = _SEED
    for _ in range(2):
        rotated = (state << 13 | state >> 19) & _MASK
        state = (rotated * 5 + _ADD) & _MASK
    return state
