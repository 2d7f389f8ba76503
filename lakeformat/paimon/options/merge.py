# SPDX-License-Identifier: Apache-2.0
"""The options for merging several rows with one primary key.

``TableOptions`` inherits these options.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import (
    BOOLEAN,
    COLUMN_NAMES,
    TEXT,
    one_of,
    whole_number,
)
from lakeformat.paimon.options.option import ColumnOption, Option

__all__ = ["AggregateOptions", "MergeOptions"]


class AggregateOptions:
    """Options for the aggregate functions of columns."""

    default_aggregate_function = Option(
        "fields.default-aggregate-function",
        TEXT,
        "",
        "The aggregate function of columns without a function of their own, with merge-engine = "
        "aggregation (unset: last_non_null_value) and in the sequence groups of partial-update.",
        mutable=False,
    )
    aggregate_function = ColumnOption(
        "fields.<column>.aggregate-function",
        TEXT,
        "",
        "With merge-engine = aggregation, or in a sequence group of partial-update: the function "
        "that aggregates the values of one key. Unset: fields.default-aggregate-function.",
    )
    ignore_retract = ColumnOption(
        "fields.<column>.ignore-retract",
        BOOLEAN,
        "false",
        "Rows of the kinds -D and -U do not change the column; for aggregate functions that cannot "
        "subtract a value, such as max.",
    )
    list_agg_delimiter = ColumnOption(
        "fields.<column>.list-agg-delimiter",
        TEXT,
        ",",
        "Separator of the texts that the aggregate function listagg joins.",
    )
    distinct = ColumnOption(
        "fields.<column>.distinct",
        BOOLEAN,
        "false",
        "The aggregate functions listagg and collect keep each value once.",
    )
    nested_key = ColumnOption(
        "fields.<column>.nested-key",
        COLUMN_NAMES,
        "",
        "For the aggregate functions nested_update and nested_partial_update, on an ARRAY of ROWs: "
        "the fields of the ROW that identify an element.",
    )
    nested_key_null_strategy = ColumnOption(
        "fields.<column>.nested-key-null-strategy",
        one_of("merge", "ignore", "error"),
        "merge",
        "Treatment of an element with a null in its `fields.<column>.nested-key`: merge treats "
        "null as a value, ignore skips the element, error fails.",
    )
    nested_sequence_field = ColumnOption(
        "fields.<column>.nested-sequence-field",
        COLUMN_NAMES,
        "",
        "For the aggregate function nested_update: the fields of the ROW that decide which of two "
        "elements with one nested key is newer.",
    )
    count_limit = ColumnOption(
        "fields.<column>.count-limit",
        whole_number(1, (1 << 31) - 1),
        str((1 << 31) - 1),
        "The most elements that the aggregate function nested_update keeps.",
    )
    ts_field = ColumnOption(
        "fields.<column>.ts-field",
        TEXT,
        "",
        "For the aggregate function merge_map_with_keytime, on a MAP whose values are ROWs: the "
        "field of the ROW that decides which of two values of a map key is newer.",
    )


class MergeOptions(AggregateOptions):
    """The merge engine, the merge order, and the treatment of deletes."""

    merge_engine = Option(
        "merge-engine",
        one_of("deduplicate", "partial-update", "aggregation", "first-row"),
        "deduplicate",
        "How rows with one primary key are merged: keep the last row, keep the last non-null "
        "value of each column, aggregate the values, or keep the first row. With first-row, rows "
        "that are not compacted yet are invisible.",
        mutable=False,
    )
    sequence_field = Option(
        "sequence.field",
        COLUMN_NAMES,
        "",
        "Columns that decide which of two rows with one key is newer; with equal values, the row "
        "that arrived later is newer.",
    )
    sequence_field_sort_order = Option(
        "sequence.field.sort-order",
        one_of("ascending", "descending"),
        "ascending",
        "The order of sequence.field: the largest or the smallest value is the newest.",
        mutable=False,
    )
    row_kind_field = Option(
        "rowkind.field",
        TEXT,
        "",
        "STRING column with the kind of each row: +I, -U, +U or -D.",
        mutable=False,
    )
    ignore_delete = Option(
        "ignore-delete",
        BOOLEAN,
        "false",
        "Rows of the kinds -D and -U are ignored, when written and when merged; tables of older "
        "releases set it as deduplicate.ignore-delete, first-row.ignore-delete or "
        "partial-update.ignore-delete. After the first snapshot, true cannot become false.",
        mutable=False,
        older_keys=(
            "deduplicate.ignore-delete",
            "first-row.ignore-delete",
            "partial-update.ignore-delete",
        ),
    )
    ignore_update_before = Option(
        "ignore-update-before",
        BOOLEAN,
        "false",
        "Rows of the kind -U (before an update) are ignored when written. After the first "
        "snapshot, true cannot become false.",
    )
    remove_record_on_delete_of_partial_update = Option(
        "partial-update.remove-record-on-delete",
        BOOLEAN,
        "false",
        "With merge-engine = partial-update: a row of the kind -D removes the row of its key. If "
        "the key is written again before a compaction drops the -D row, the new row is merged "
        "with the values in the -D row. false: a write, read or compaction that merges a row of "
        "the kind -D or -U with another row fails, unless the table has a sequence group or "
        "ignore-delete.",
        mutable=False,
    )
    remove_record_on_sequence_group = Option(
        "partial-update.remove-record-on-sequence-group",
        COLUMN_NAMES,
        "",
        "With merge-engine = partial-update: columns that stand for `<column>` in an option "
        "`fields.<column>.sequence-group`. A row of the kind -D removes the row of its key if its "
        "value in such a column is not smaller than that of earlier rows.",
        mutable=False,
    )
    remove_record_on_delete_of_aggregation = Option(
        "aggregation.remove-record-on-delete",
        BOOLEAN,
        "false",
        "With merge-engine = aggregation: a row of the kind -D removes the row of its key. If the "
        "key is written again before a compaction drops the -D row, the new row is merged with the "
        "values in the -D row. false: the aggregate function of each column subtracts the value in "
        "the -D row. A function that cannot subtract, such as max, fails.",
        mutable=False,
    )
    sequence_group = ColumnOption(
        "fields.<column>.sequence-group",
        COLUMN_NAMES,
        "",
        "With merge-engine = partial-update: columns that a row updates only if its value in "
        "`<column>` is not smaller than the values of earlier rows. `<column>` can be several "
        "names with commas between.",
    )
