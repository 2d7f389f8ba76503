# SPDX-License-Identifier: Apache-2.0
"""The columns of a table as Spark types, and Arrow batches in the types that Spark takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark.sql import types as spark_types
from pyspark.sql.pandas.types import to_arrow_schema

import lakeformat as lake
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
)

__all__ = ["ToSpark", "holds_what_spark_reads", "is_same_type", "spark_schema", "spark_type"]

_ATOMIC: dict[TypeName, spark_types.DataType] = {
    TypeName.CHAR: spark_types.StringType(),
    TypeName.VARCHAR: spark_types.StringType(),
    TypeName.BOOLEAN: spark_types.BooleanType(),
    TypeName.BINARY: spark_types.BinaryType(),
    TypeName.VARBINARY: spark_types.BinaryType(),
    TypeName.TINYINT: spark_types.ByteType(),
    TypeName.SMALLINT: spark_types.ShortType(),
    TypeName.INT: spark_types.IntegerType(),
    TypeName.BIGINT: spark_types.LongType(),
    TypeName.FLOAT: spark_types.FloatType(),
    TypeName.DOUBLE: spark_types.DoubleType(),
    TypeName.DATE: spark_types.DateType(),
    TypeName.TIMESTAMP: spark_types.TimestampNTZType(),
    TypeName.TIMESTAMP_LTZ: spark_types.TimestampType(),
}
_MICROSECONDS = 6


def spark_schema(fields: Iterable[DataField]) -> spark_types.StructType:
    """Return the Spark schema of columns, in which each column is nullable.

    Raise ``UnsupportedError``, which names the column, for a type whose values are not passed to
    Spark, such as VARIANT.
    """
    return spark_types.StructType([_spark_field(field) for field in fields])


def _spark_field(field: DataField) -> spark_types.StructField:
    try:
        return spark_types.StructField(field.name, spark_type(field.type))
    except lake.UnsupportedError as reason:
        raise lake.UnsupportedError(f"column {field.name!r}: {reason}") from None


def spark_type(data_type: DataType) -> spark_types.DataType:
    """Return the Spark type for a logical type; raise ``UnsupportedError`` for a type whose values
    are not passed to Spark, such as VARIANT.
    """
    match data_type:
        case AtomicType(name=TypeName.DECIMAL):
            return spark_types.DecimalType(data_type.precision, data_type.scale)
        case AtomicType(name=name) if name in _ATOMIC:
            return _ATOMIC[name]
        case ArrayType(element=element):
            return spark_types.ArrayType(spark_type(element), element.nullable)
        case MapType(key=key, value=value):
            return spark_types.MapType(spark_type(key), spark_type(value), value.nullable)
        case MultisetType(element=element):
            return spark_types.MapType(spark_type(element), spark_types.IntegerType(), False)
        case RowType(fields=fields):
            return spark_schema(fields)
    raise lake.UnsupportedError(
        f"this version does not pass type {type_to_sql(data_type)} to Spark: leave the column out "
        "with 'columns', or read the table with lakeformat"
    )


def holds_what_spark_reads(data_type: DataType) -> bool:
    """Return True if Spark's own Parquet reader returns the same values of this type as this
    library.
    """
    match data_type:
        case AtomicType(name=TypeName.TIMESTAMP | TypeName.TIMESTAMP_LTZ):
            return data_type.precision <= _MICROSECONDS  # timestamps of a finer unit are INT96
        case AtomicType(name=name):
            return name in _ATOMIC or name is TypeName.DECIMAL
        case ArrayType(element=element):
            return holds_what_spark_reads(element)
        case MapType(key=key, value=value):
            return holds_what_spark_reads(key) and holds_what_spark_reads(value)
        case RowType(fields=fields):
            # Spark does not read fields whose names differ only by case.
            is_clear = len({field.name.lower() for field in fields}) == len(fields)
            return is_clear and all(holds_what_spark_reads(field.type) for field in fields)
    return False


def is_same_type(one: spark_types.DataType, other: spark_types.DataType) -> bool:
    """Return True if two Spark types have the same values, with the same names of nested fields
    in the same order. Nullability, collations and comments do not count.
    """
    match one, other:
        case spark_types.StructType(), spark_types.StructType():
            pairs = zip(one.fields, other.fields, strict=False)  # the numbers of names are equal
            same = (is_same_type(a.dataType, b.dataType) for a, b in pairs)
            return one.names == other.names and all(same)
        case spark_types.ArrayType(), spark_types.ArrayType():
            return is_same_type(one.elementType, other.elementType)
        case spark_types.MapType(), spark_types.MapType():
            keys = is_same_type(one.keyType, other.keyType)
            return keys and is_same_type(one.valueType, other.valueType)
        case spark_types.StringType(), spark_types.StringType():
            return True
    return one == other


class ToSpark:
    """Converts Arrow columns to a batch with the types of a Spark schema.

    Calling the object with the columns returns the batch, and raises ``UnsupportedError`` for a
    value that the type of its column cannot hold.
    """

    def __init__(self, schema: spark_types.StructType) -> None:
        self._schema = to_arrow_schema(schema)

    def __call__(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        cast = [self._cast(*each) for each in zip(self._schema, columns, strict=True)]
        return pa.RecordBatch.from_arrays(cast, schema=self._schema)

    def _cast(self, field: pa.Field, column: pa.Array) -> pa.Array:
        if column.type.equals(field.type):
            return column
        try:
            return column.cast(field.type)
        except pa.ArrowInvalid as reason:
            raise lake.UnsupportedError(
                f"column {field.name!r} has a value that Spark's {field.type} cannot hold: "
                f"{reason}. Leave the column out with 'columns', or read the table with lakeformat"
            ) from None
