# SPDX-License-Identifier: Apache-2.0
"""The options of row ids, of deletion vectors, and of schema changes.

``TableOptions`` inherits these options.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import BOOLEAN
from lakeformat.paimon.options.option import Option

__all__ = ["SchemaOptions"]


class SchemaOptions:
    """Options for deletion vectors, row ids and data evolution, and for changes of columns."""

    deletion_vectors_enabled = Option(
        "deletion-vectors.enabled",
        BOOLEAN,
        "false",
        "In a primary-key table a compaction marks replaced rows, so that reads need no merge; "
        "rows that are not compacted yet are then invisible. In an append table deletes and "
        "updates mark rows, and do not rewrite their files. Fixed after the first snapshot, unless "
        "deletion-vectors.modifiable is true.",
        mutable=False,
    )
    deletion_vectors_merge_on_read = Option(
        "deletion-vectors.merge-on-read",
        BOOLEAN,
        "false",
        "Reads of a primary-key table with deletion vectors include rows that are not compacted "
        "yet, except with merge-engine = first-row.",
    )
    add_column_before_partition = Option(
        "add-column-before-partition",
        BOOLEAN,
        "false",
        "New columns are placed before the partition columns instead of last, unless the call "
        "gives a position.",
    )
    alter_column_null_to_not_null_disabled = Option(
        "alter-column-null-to-not-null.disabled",
        BOOLEAN,
        "true",
        "Refuse to make a column NOT NULL. false allows this; set it only if you know that the "
        "column has no nulls.",
    )
    disable_explicit_type_casting = Option(
        "disable-explicit-type-casting",
        BOOLEAN,
        "false",
        "Refuse to change a column to a type that cannot hold every value of the old type.",
    )
    row_tracking_enabled = Option(
        "row-tracking.enabled",
        BOOLEAN,
        "false",
        "Every row gets a number that never changes. This library then refuses to compact, update "
        "and delete rows, because the numbers would be lost.",
        mutable=False,
    )
    row_tracking_partition_group = Option(
        "row-tracking.partition-group-on-commit",
        BOOLEAN,
        "true",
        "With row-tracking.enabled: the rows that a commit adds to one partition get consecutive "
        "numbers.",
    )
    data_evolution_enabled = Option(
        "data-evolution.enabled",
        BOOLEAN,
        "false",
        "Files may hold new values of single columns, matched to the rows by row number; needs "
        "'row-tracking.enabled'. This library reads such tables and appends rows; only other "
        "engines change single columns.",
        mutable=False,
    )
