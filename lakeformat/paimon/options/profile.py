# SPDX-License-Identifier: Apache-2.0
"""Profiles: sets of options for new tables. A table stores the options, not the profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.types.closest import closest

__all__ = ["PROFILE", "Profile", "with_profile"]

PROFILE = "profile"
"""The option that gives a profile instead of the argument ``profile``; tables do not store it."""
Profile: TypeAlias = Literal["mixed"]

_NAMES: Final = ("mixed",)
_ENGINE, _BUCKET, _CONFLICT = "merge-engine", "bucket", "write.conflict"
_DEDUPLICATE, _FIRST_ROW = "deduplicate", "first-row"
_MIXED: Final[Mapping[str, str]] = {
    _ENGINE: _DEDUPLICATE,
    "changelog-producer": "lookup",
    "deletion-vectors.enabled": "true",
    _BUCKET: "-1",
    "metadata.iceberg.storage": "table-location",
    "metadata.iceberg.format-version": "2",
    _CONFLICT: "transaction-order",
}


def with_profile(
    options: Mapping[str, str],
    profile: object,
    *,
    primary_key: Sequence[str],
    partition_by: Sequence[str],
) -> dict[str, str]:
    """Return the options, completed by the options of a profile; unchanged without a profile.

    The profile may also be given as the option ``profile``, which the result leaves out. A profile
    does not set ``write.conflict`` if the table does not support transaction order. Raise
    InvalidRequestError for an unknown profile, and for a table that the profile does not fit.
    """
    given = dict(options)
    named = given.pop(PROFILE, None)
    if profile is not None and named not in (None, profile):
        raise InvalidRequestError(
            f"the argument profile is {profile!r} and the option {PROFILE!r} is {named!r}: give "
            "only one of them"
        )
    chosen = named if profile is None else profile
    if chosen is None:
        return given
    if chosen not in _NAMES:
        raise InvalidRequestError(
            f"profile must be {' or '.join(map(repr, _NAMES))}, got {chosen!r}"
            f"{closest(str(chosen), _NAMES)}"
        )
    found = {**_MIXED, **given}
    _require_replaceable_rows(found, primary_key)
    if not _has_transactions(found, primary_key, partition_by) and _CONFLICT not in given:
        del found[_CONFLICT]
    return found


def _require_replaceable_rows(options: Mapping[str, str], primary_key: Sequence[str]) -> None:
    if not primary_key:
        raise InvalidRequestError(
            "profile='mixed' is for tables with a primary key, by which newer rows replace older "
            "ones: name its columns in primary_key, or leave out the profile"
        )
    if options[_ENGINE] == _FIRST_ROW:
        raise InvalidRequestError(
            f"profile='mixed' is for tables whose rows change, but {_ENGINE!r} is {_FIRST_ROW!r}, "
            "which keeps the first row of each key: leave out the profile, or choose "
            "another merge engine"
        )


def _has_transactions(
    options: Mapping[str, str], primary_key: Sequence[str], partition_by: Sequence[str]
) -> bool:
    """Return True if ``write.conflict=transaction-order`` is possible for the rows of the table.

    This requires that the newest row of a key replaces the older rows, and that all rows of a key
    are in the same partition.
    """
    return (
        options[_ENGINE] == _DEDUPLICATE
        and not options.get("sequence.field")
        and options[_BUCKET] != str(POSTPONE_BUCKET)
        and {*partition_by} <= {*primary_key}
    )
