# SPDX-License-Identifier: Apache-2.0
"""Finds the table option that chooses the snapshot for scans; refuses options that contradict each
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.option import Option

__all__ = ["INCREMENTAL", "NamedState", "named_state"]

INCREMENTAL = "incremental"
_DEFAULT = "default"
_NEWEST = ("latest-full", "full", "latest")

_OPTIONS: Mapping[str, tuple[Option[Any], ...]] = {
    "from-snapshot": (
        TableOptions.scan_snapshot_id,
        TableOptions.scan_tag_name,
        TableOptions.scan_version,
        TableOptions.scan_watermark,
    ),
    "from-snapshot-full": (TableOptions.scan_snapshot_id,),
    "from-timestamp": (TableOptions.scan_timestamp_millis, TableOptions.scan_timestamp),
    "from-file-creation-time": (TableOptions.scan_file_creation_time_millis,),
    "from-creation-timestamp": (TableOptions.scan_creation_time_millis,),
    INCREMENTAL: (
        TableOptions.incremental_between,
        TableOptions.incremental_between_timestamp,
        TableOptions.incremental_to_auto_tag,
    ),
}
"""For each ``scan.mode`` that needs an option: the options of which a table must set exactly one.
"""
_DEFAULT_MODES = [
    (option, mode)
    for mode, options in _OPTIONS.items()
    if mode != "from-snapshot-full"
    for option in options
]
"""Each option in ``_OPTIONS``, with the scan mode that it chooses if ``scan.mode`` is not set."""


@dataclass(frozen=True, slots=True)
class NamedState:
    """The table option that chooses the snapshot for scans, its value, and the scan mode."""

    option: Option[Any]
    """The option that chooses the snapshot: ``scan.mode`` itself in the mode ``compacted-full``."""
    mode: str
    text: str

    def __str__(self) -> str:
        return f"{self.option.key!r} = {self.text!r}"


def named_state(options: TableOptions) -> NamedState | None:
    """Return the option that chooses the snapshot for scans; None for the newest snapshot.

    Raise InvalidRequestError if two options contradict each other, or if ``scan.mode`` lacks its
    option.
    """
    given = [each for each in _DEFAULT_MODES if options.text(each[0])]
    if len(given) > 1:
        listed = " and ".join(repr(option.key) for option, _ in given)
        raise InvalidRequestError(
            f"options {listed} choose several snapshots, but a scan reads one; keep one option"
        )
    mode = options.scan_mode
    if mode == _DEFAULT:
        return _named(options, *given[0]) if given else None
    wanted = _OPTIONS.get(mode, ())
    for option, _ in given:
        if option not in wanted:
            raise InvalidRequestError(
                f"option 'scan.mode' is {mode!r}, which cannot be combined with {option.key!r}: "
                "remove one of them"
            )
        return _named(options, option, mode)
    if wanted:
        listed = " or ".join(repr(option.key) for option in wanted)
        raise InvalidRequestError(
            f"option 'scan.mode' is {mode!r}, which needs {listed}: set one, or remove 'scan.mode'"
        )
    return None if mode in _NEWEST else _named(options, TableOptions.scan_mode, mode)


def _named(options: TableOptions, option: Option[Any], mode: str) -> NamedState:
    return NamedState(option, mode, options.text(option))
