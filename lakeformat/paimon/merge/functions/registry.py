# SPDX-License-Identifier: Apache-2.0
"""Finds the aggregate function for the name that a table option gives to a column."""

from __future__ import annotations

from lakeformat.paimon.aggregate_rules import canonical_name, check_function, timestamp_member
from lakeformat.paimon.merge.functions.bitmaps import union_of_bitmaps
from lakeformat.paimon.merge.functions.collect import CollectFunction
from lakeformat.paimon.merge.functions.extremes import ExtremeFunction
from lakeformat.paimon.merge.functions.function import AggregateFunction
from lakeformat.paimon.merge.functions.ignore_retract import IgnoreRetract
from lakeformat.paimon.merge.functions.listagg import ListaggFunction
from lakeformat.paimon.merge.functions.long_bitmaps import union_of_long_bitmaps
from lakeformat.paimon.merge.functions.merge_map import MergeMapFunction
from lakeformat.paimon.merge.functions.merge_map_with_keytime import MergeMapWithKeyTimeFunction
from lakeformat.paimon.merge.functions.nested import NestedKey
from lakeformat.paimon.merge.functions.nested_partial_update import NestedPartialUpdateFunction
from lakeformat.paimon.merge.functions.nested_update import NestedUpdateFunction
from lakeformat.paimon.merge.functions.positions import PositionFunction
from lakeformat.paimon.merge.functions.products import ProductFunction
from lakeformat.paimon.merge.functions.serialized import SerializedFunction
from lakeformat.paimon.merge.functions.sketches import sketch_union
from lakeformat.paimon.merge.functions.sums import SumFunction
from lakeformat.paimon.options import TableOptions
from lakeformat.types.types import DataField

__all__ = ["aggregate_function", "kept_key"]

PRIMARY_KEY = "primary-key"


def kept_key(column: str) -> AggregateFunction:
    """Return the function that keeps the value of a primary-key column.

    The value is the same in all rows of a key.
    """
    return PositionFunction(PRIMARY_KEY, column)


def aggregate_function(name: str, field: DataField, options: TableOptions) -> AggregateFunction:
    """Return the function ``name`` for the column ``field``, with the column's options applied.

    Raise InvalidRequestError for an unknown function, or one that does not support the column's
    type. Options that the function cannot use raise InvalidRequestError or UnsupportedError. Raise
    UnsupportedError if the package of a sketch function is not installed.
    """
    check_function(name, field, options)
    function = _function(canonical_name(name, field.name), field, options)
    ignores = options.of_column(TableOptions.ignore_retract, field.name)
    return IgnoreRetract(function) if ignores else function


def _function(name: str, field: DataField, options: TableOptions) -> AggregateFunction:
    column = field.name
    match name:
        case "sum" | "count":  # the stored values are counts
            return SumFunction(name, column)
        case "product":
            return ProductFunction(name, column)
        case "max" | "bool_or":
            return ExtremeFunction(name, column, largest=True)
        case "min" | "bool_and":
            return ExtremeFunction(name, column, largest=False)
        case "rbm32":
            return SerializedFunction(name, column, union_of_bitmaps)
        case "rbm64":
            return SerializedFunction(name, column, union_of_long_bitmaps)
        case "hll_sketch" | "theta_sketch":
            return SerializedFunction(name, column, sketch_union(name, column))
        case "last_value" | "last_non_null_value" | "first_value" | "first_non_null_value":
            return PositionFunction(name, column)
    return _joining(name, field, options)


def _joining(name: str, field: DataField, options: TableOptions) -> AggregateFunction:
    column = field.name
    distinct = options.of_column(TableOptions.distinct, column) or False
    match name:
        case "listagg":
            delimiter = options.of_column(TableOptions.list_agg_delimiter, column)
            default = TableOptions.list_agg_delimiter.default
            return ListaggFunction(
                name, column, default if delimiter is None else delimiter, distinct
            )
        case "collect":
            return CollectFunction(name, column, distinct)
        case "merge_map":
            return MergeMapFunction(name, column)
        case "merge_map_with_keytime":
            return MergeMapWithKeyTimeFunction(name, column, timestamp_member(field, options))
    members = options.of_column(TableOptions.nested_key, column) or ()
    strategy = options.of_column(TableOptions.nested_key_null_strategy, column)
    key = NestedKey(column, members, strategy or TableOptions.nested_key_null_strategy.default)
    if name == "nested_partial_update":
        return NestedPartialUpdateFunction(name, column, key)
    assert name == "nested_update", name
    sequence = options.of_column(TableOptions.nested_sequence_field, column) or ()
    limit = options.of_column(TableOptions.count_limit, column)
    if limit is None:
        limit = int(TableOptions.count_limit.default)
    return NestedUpdateFunction(name, column, key if members else None, sequence, limit)
