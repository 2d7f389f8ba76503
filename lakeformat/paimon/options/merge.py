"""The options that say what becomes of several rows with one primary key.

Declared like all options of a table, and read as part of ``TableOptions``.
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
    """How the values of a column become one, for engines that aggregate."""

    default_aggregate_function = Option(
        "fields.default-aggregate-function",
        TEXT,
        "",
        "The aggregate function of columns that name none of their own.",
        mutable=False,
    )
    aggregate_function = ColumnOption(
        "fields.<column>.aggregate-function",
        TEXT,
        "",
        "How the values of one key become one: sum, max, last_non_null_value and others.",
        mutable=False,
    )
    ignore_retract = ColumnOption(
        "fields.<column>.ignore-retract",
        BOOLEAN,
        "false",
        "Whether deletes and update-befores leave the column as it is.",
        mutable=False,
    )
    list_agg_delimiter = ColumnOption(
        "fields.<column>.list-agg-delimiter",
        TEXT,
        ",",
        "What stands between the texts that listagg joins.",
        mutable=False,
    )
    distinct = ColumnOption(
        "fields.<column>.distinct",
        BOOLEAN,
        "false",
        "Whether listagg and collect keep each value once.",
        mutable=False,
    )
    nested_key = ColumnOption(
        "fields.<column>.nested-key",
        COLUMN_NAMES,
        "",
        "The members that identify an element for nested_update and nested_partial_update.",
        mutable=False,
    )
    nested_key_null_strategy = ColumnOption(
        "fields.<column>.nested-key-null-strategy",
        one_of("merge", "ignore", "error"),
        "merge",
        "What becomes of an element whose nested key has a null: it counts as a value, is left "
        "out, or is an error.",
        mutable=False,
    )
    nested_sequence_field = ColumnOption(
        "fields.<column>.nested-sequence-field",
        COLUMN_NAMES,
        "",
        "The members that say which of two elements of one nested key is newer.",
        mutable=False,
    )
    count_limit = ColumnOption(
        "fields.<column>.count-limit",
        whole_number(1, (1 << 31) - 1),
        str((1 << 31) - 1),
        "How many elements nested_update keeps.",
        mutable=False,
    )
    ts_field = ColumnOption(
        "fields.<column>.ts-field",
        TEXT,
        "",
        "The member that says when an entry was made, for merge_map_with_keytime.",
        mutable=False,
    )


class MergeOptions(AggregateOptions):
    """Which engine merges, in which order, and what happens to deletes."""

    merge_engine = Option(
        "merge-engine",
        one_of("deduplicate", "partial-update", "aggregation", "first-row"),
        "deduplicate",
        "What becomes of several rows with one primary key: the last one wins, its columns that "
        "are not null win, they are aggregated, or the first one stays.",
        mutable=False,
    )
    sequence_field = Option(
        "sequence.field",
        COLUMN_NAMES,
        "",
        "Columns that say which of two rows with one key is newer; equal ones count by arrival.",
    )
    sequence_field_sort_order = Option(
        "sequence.field.sort-order",
        one_of("ascending", "descending"),
        "ascending",
        "Whether the largest or the smallest value of sequence.field is the newest.",
        mutable=False,
    )
    row_kind_field = Option(
        "rowkind.field",
        TEXT,
        "",
        "The column that says what a row does: +I, -U, +U or -D.",
        mutable=False,
    )
    ignore_delete = Option(
        "ignore-delete",
        BOOLEAN,
        "false",
        "Whether deletes and update-befores are left out, when written and when merged; tables of "
        "older releases set it as deduplicate.ignore-delete, first-row.ignore-delete or "
        "partial-update.ignore-delete.",
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
        "Whether update-befores are left out when written.",
    )
    remove_record_on_delete_of_partial_update = Option(
        "partial-update.remove-record-on-delete",
        BOOLEAN,
        "false",
        "Whether a delete removes the row of its key, instead of being refused.",
        mutable=False,
    )
    remove_record_on_sequence_group = Option(
        "partial-update.remove-record-on-sequence-group",
        COLUMN_NAMES,
        "",
        "Sequence columns whose group's newest delete removes the row of its key.",
        mutable=False,
    )
    remove_record_on_delete_of_aggregation = Option(
        "aggregation.remove-record-on-delete",
        BOOLEAN,
        "false",
        "Whether a delete removes the row of its key, instead of being taken back by column.",
        mutable=False,
    )
    sequence_group = ColumnOption(
        "fields.<column>.sequence-group",
        COLUMN_NAMES,
        "",
        "The columns that change only together with this one, or these with commas between, for "
        "partial-update.",
        mutable=False,
    )
