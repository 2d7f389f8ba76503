# SPDX-License-Identifier: Apache-2.0
"""Checks changes of table options, by the rules of the format and of this library."""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options import TableOptions, declared_options
from lakeformat.paimon.options.kinds import BOOLEAN, UNAWARE_BUCKET
from lakeformat.paimon.options.option import Option
from lakeformat.paimon.options.profile import PROFILE

__all__ = ["check_removal", "check_setting", "is_fixed"]

IMMUTABLE = frozenset(
    {
        "type",
        "bucket-key",
        "bucket-function.type",
        "merge-engine",
        "primary-key.nullable",
        "rowkind.field",
        "sequence.snapshot-ordering",
        "aggregation.remove-record-on-delete",
        "partial-update.remove-record-on-delete",
        "partial-update.remove-record-on-sequence-group",
        "dynamic-bucket.initial-buckets",
        "force-lookup",
        "row-tracking.enabled",
        "data-evolution.enabled",
        "index-file-in-data-file-dir",
        "data-file.path-directory",
        "blob-field",
        "blob-descriptor-field",
        "blob-view-field",
        "pk-clustering-override",
    }
)
"""Options that cannot change once the table has a snapshot."""

NEVER = frozenset({"type", "path", "primary-key", "partition", PROFILE})
"""Options that can never change."""

ONLY_TO_TRUE = frozenset({"ignore-delete", "ignore-update-before"})

_NEWER_KEY = {older: option.key for option in declared_options() for older in option.older_keys}
# Checked here, although this version does not use the option for its own tables.
_MODIFIABLE = Option(
    "deletion-vectors.modifiable",
    BOOLEAN,
    "false",
    "Allows 'deletion-vectors.enabled' to change once the table has a snapshot.",
)
_FLAGS = {
    option.key: option
    for option in (
        TableOptions.deletion_vectors_enabled,
        TableOptions.ignore_delete,
        TableOptions.ignore_update_before,
    )
}


def check_setting(options: Mapping[str, str], key: str, value: str, *, has_snapshots: bool) -> None:
    """Raise InvalidRequestError if the option cannot be set to ``value``.

    ``options`` are the options of the table before the change.
    """
    if key in NEVER:
        raise InvalidRequestError(
            f"option {key!r} cannot be changed in an existing table; create a new table"
        )
    if has_snapshots:
        _check_immutable(key)
    TableOptions({key: value}).validate()
    if has_snapshots:
        if key == "bucket":
            _check_bucket(options.get(key, str(UNAWARE_BUCKET)), value)
        if (newer := _NEWER_KEY.get(key, key)) in _FLAGS:
            _check_flag(options, newer, value)


def check_removal(options: Mapping[str, str], key: str, *, has_snapshots: bool) -> None:
    """Raise InvalidRequestError if the option cannot be reset to its default."""
    if key in NEVER:
        raise InvalidRequestError(
            f"option {key!r} cannot be changed in an existing table; create a new table"
        )
    if not has_snapshots:
        return
    _check_immutable(key)
    if key == "bucket":
        raise InvalidRequestError(
            "option 'bucket' cannot be removed once a table has a snapshot, because files depend "
            "on it; create a new table without it and copy the rows"
        )
    if (newer := _NEWER_KEY.get(key, key)) in _FLAGS:
        left = {each: value for each, value in options.items() if each != key}
        _check_flag(options, newer, TableOptions(left).text(_FLAGS[newer]))


def is_fixed(key: str) -> bool:
    """Return True if the option cannot change once the table has a snapshot."""
    declared = {option.key for option in declared_options() if not option.mutable}
    return key in IMMUTABLE | (declared - {"bucket", *_FLAGS})


def _check_immutable(key: str) -> None:
    if is_fixed(key):
        raise InvalidRequestError(
            f"option {key!r} cannot change once a table has a snapshot, because files depend on "
            "it; create a new table with the options you need and copy the rows"
        )


def _check_bucket(old: str, new: str) -> None:
    before, after = int(TableOptions({"bucket": old}).bucket), int(new)
    if (before > 0) != (after > 0) or (before < 0 and before != after):
        raise InvalidRequestError(
            f"option 'bucket' cannot change from {before} to {after} once a table has a snapshot: "
            "only a positive number can change to another positive number; create a new table with "
            f"'bucket' = '{after}' and copy the rows"
        )


def _check_flag(options: Mapping[str, str], key: str, value: str) -> None:
    table = TableOptions(options)
    flag = _FLAGS[key]
    before, after = _is_on(flag, table.text(flag)), _is_on(flag, value)
    if key in ONLY_TO_TRUE and before and not after:
        raise InvalidRequestError(
            f"option {key!r} cannot change from true to false once a table has a snapshot; create "
            "a new table and copy the rows"
        )
    if key not in ONLY_TO_TRUE and before != after:
        if _MODIFIABLE.parse(table.text(_MODIFIABLE)):
            return
        raise InvalidRequestError(
            f"option {key!r} cannot become {str(after).lower()!r}: without a full compaction, "
            "replaced or deleted rows could be read again. Compact the table in full, set "
            "'deletion-vectors.modifiable' to 'true', and repeat this change"
        )


def _is_on(flag: Option[bool], text: str) -> bool:
    """Return the value of a flag; False, as in Java, for a text that is neither true nor false.

    Another program may have stored such a text, and it must be possible to correct it.
    """
    try:
        return flag.parse(text)
    except InvalidRequestError:
        return False
