# SPDX-License-Identifier: Apache-2.0
"""The merge engine and the merge order that a table's options define."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakeformat.paimon.merge.deduplicate import Deduplicate
from lakeformat.paimon.merge.engine import MergeEngine
from lakeformat.paimon.merge.looked_up import LookedUp, supersedes
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.schema_changes.merge_rules import check_sequence_columns

if TYPE_CHECKING:
    from lakeformat.paimon.merge.partial_update_rules import PartialUpdateRules

__all__ = ["merge_engine", "merge_order", "read_engine"]


def merge_order(schema: TableSchema) -> MergeOrder:
    """Return the order in which the rows of a bucket are merged.

    Raise InvalidRequestError if ``sequence.field`` names a column that the table does not have.
    """
    options = schema.table_options
    sequence = tuple(name.strip() for name in options.sequence_field)
    check_sequence_columns(schema, sequence)  # another engine may have named any column
    keys = tuple(field.name for field in schema.key_fields)
    return MergeOrder(
        keys,
        tuple(name for name in sequence if name not in keys),  # rows of one key are equal in these
        options.sequence_field_sort_order == "descending",
    )


def merge_engine(schema: TableSchema) -> MergeEngine:
    """Return the merge engine of the table.

    Raise InvalidRequestError if the options of the engine do not fit the columns. Raise
    UnsupportedError if the package of a sketch function is not installed.
    """
    options = schema.table_options
    match options.merge_engine:
        case "aggregation":
            from lakeformat.paimon.merge.aggregation import Aggregation

            return Aggregation.of_schema(schema)
        case "partial-update":
            from lakeformat.paimon.merge.partial_update import PartialUpdate

            return PartialUpdate(_partial_update_rules(schema))
        case "first-row":
            from lakeformat.paimon.merge.first_row import FirstRow

            keys = tuple(field.name for field in schema.key_fields)
            return FirstRow(keys, options.ignore_delete)
        case "deduplicate":
            return Deduplicate(options.ignore_delete)
    raise AssertionError(options.merge_engine)


def read_engine(schema: TableSchema) -> MergeEngine:
    """Return the merge engine for reads.

    If ``supersedes(schema.table_options)`` is true, the rows that this engine merges must have the
    column ``_LEVEL``.
    """
    engine = merge_engine(schema)
    return LookedUp(engine) if supersedes(schema.table_options) else engine


def _partial_update_rules(schema: TableSchema) -> PartialUpdateRules:
    from lakeformat.paimon.merge.functions.registry import aggregate_function
    from lakeformat.paimon.merge.partial_update_rules import PartialUpdateRules
    from lakeformat.paimon.schema_changes.partial_update_rules import check_partial_update
    from lakeformat.paimon.schema_changes.sequence_groups import sequence_groups

    check_partial_update(schema)  # another writer may have created the table
    options = schema.table_options
    # A key keeps its partition, so partition columns never change.
    kept = schema.partition_keys
    groups = tuple(
        replace(group, protected=tuple(name for name in group.protected if name not in kept))
        for group in sequence_groups(schema)
    )
    protected = {name for group in groups for name in group.protected}
    functions = {
        field.name: aggregate_function(name, field, options)
        for field in schema.fields
        if field.name in protected and (name := options.aggregate_function_of(field.name))
    }
    return PartialUpdateRules(
        columns=tuple(schema.column_names),
        keys=tuple(field.name for field in schema.key_fields),
        not_null=frozenset(field.name for field in schema.fields if not field.type.nullable),
        groups=groups,
        functions=functions,
        ignore_delete=options.ignore_delete,
        remove_on_delete=options.remove_record_on_delete_of_partial_update,
        remove_on_groups=frozenset(options.remove_record_on_sequence_group),
    )
