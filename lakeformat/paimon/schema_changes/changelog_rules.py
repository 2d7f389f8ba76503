# SPDX-License-Identifier: Apache-2.0
"""Checks ``changelog-producer`` and the options that depend on it."""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.schema import TableSchema

__all__ = ["check_change_of_lookups", "check_changelog", "check_without_changelog"]

_BY_COLUMN = ("aggregation", "partial-update")


def check_changelog(schema: TableSchema) -> None:
    """Raise InvalidRequestError if ``changelog-producer`` contradicts another option of the table,
    or if ``changelog-producer.row-deduplicate-ignore-fields`` names a column that does not exist.
    """
    options = schema.table_options
    producer = options.changelog_producer
    for name in options.changelog_row_deduplicate_ignore_fields:
        if name not in schema.column_names:
            raise InvalidRequestError(
                f"option 'changelog-producer.row-deduplicate-ignore-fields' names {name!r}, which "
                f"is not a column; the columns are {', '.join(schema.column_names)}"
            )
    if options.streaming_read_overwrite and producer in ("lookup", "full-compaction"):
        raise InvalidRequestError(
            f"option 'streaming-read-overwrite' is 'true', but 'changelog-producer' is "
            f"{producer!r}, whose compactions may deliver the rows of an overwrite again; leave "
            "the option out, or set the producer to 'input' or 'none'"
        )
    if producer == "full-compaction" and options.deletion_vectors_enabled:
        raise InvalidRequestError(
            "option 'deletion-vectors.enabled' is 'true', but 'changelog-producer' is "
            "'full-compaction', which reports no change before a full compaction; set the producer "
            "to 'lookup', 'input' or 'none'"
        )
    if producer == "full-compaction" and options.force_lookup:
        raise InvalidRequestError(
            "option 'force-lookup' is 'true', but 'changelog-producer' is 'full-compaction', which "
            "does not work with look-ups; leave one of the two out"
        )
    if producer == "lookup" and options.full_compaction_delta_commits is not None:
        raise InvalidRequestError(
            f"option 'full-compaction.delta-commits' is {options.full_compaction_delta_commits}, "
            "but 'changelog-producer' is 'lookup', which makes a changelog in every compaction; "
            "leave the option out, or set the producer to 'full-compaction'"
        )


def check_without_changelog(schema: TableSchema) -> None:
    """Raise InvalidRequestError if a table without a primary key has an option that needs one.

    These options are ``changelog-producer``, ``force-lookup`` and ``streaming-read-overwrite``.
    """
    options = schema.table_options
    asked = {
        "changelog-producer": options.changelog_producer != "none" and options.changelog_producer,
        "force-lookup": options.force_lookup and "true",
        "streaming-read-overwrite": options.streaming_read_overwrite and "true",
    }
    for key, value in asked.items():
        if value:
            other = (
                " or use 'streaming-read-append-overwrite' instead" if "overwrite" in key else ""
            )
            raise InvalidRequestError(
                f"option {key!r} is {value!r}, and the table has no primary key; leave the option "
                f"out{other}, or create a table with a primary key"
            )


def check_change_of_lookups(before: TableSchema, after: TableSchema) -> None:
    """Raise InvalidRequestError if existing rows would be merged differently with the new options.

    With ``changelog-producer`` = ``lookup``, compactions look up the older rows of a key. Then the
    key's row at the lowest level above 0 already includes its rows at all higher levels. Without
    lookups, reads merge the rows of all levels. A change of ``deletion-vectors.enabled`` is checked
    elsewhere.

    If an option of the old schema cannot be parsed, nothing is checked, so that a change can
    correct the option.
    """
    old, new = before.table_options, after.table_options
    try:
        if old.looks_up == new.looks_up or new.merge_engine not in _BY_COLUMN:
            return
        if old.deletion_vectors_enabled != new.deletion_vectors_enabled:
            return
    except InvalidRequestError:
        return
    raise InvalidRequestError(
        f"option 'changelog-producer' cannot change from {old.changelog_producer!r} to "
        f"{new.changelog_producer!r} once a table with 'merge-engine' = {new.merge_engine!r} has "
        "a snapshot, because existing rows would be merged differently. With 'lookup', each "
        "compaction stores the complete value of a key. Without it, a compaction may store only "
        "a part. Create a new table with the option, and copy the rows"
    )
