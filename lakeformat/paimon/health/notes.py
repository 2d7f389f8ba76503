# SPDX-License-Identifier: Apache-2.0
"""Notes of a health report: sentences about options that change neither verdict nor score."""

from __future__ import annotations

from lakeformat.paimon.datafile.instant_format import lacks_zone
from lakeformat.paimon.handle import TableHandle, traits_of
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.operation import Operation

__all__ = ["find_notes"]


def find_notes(handle: TableHandle) -> tuple[str, ...]:
    """Return notes about options that forbid an operation, are ignored or are unknown.

    One more note is returned if the table has times in ORC files, but no option names the time
    zone of the JVM that wrote them. Such times may be misread.
    """
    options = handle.options
    notes = [*_refusing(handle)]
    if layout := options.ignored_layout():
        notes.append(f"ignored options, which only affect the layout of files: {_named(layout)}")
    if unknown := options.unknown():
        notes.append(f"unknown options, kept for the engine that set them: {_named(unknown)}")
    if lacks_zone(handle.schema):
        notes.append(
            "ORC files of this table do not name the time zone of the JVM that wrote them, and "
            "TIMESTAMP_LTZ is read as if written in UTC; if your engines run in another zone, set "
            f"{TableOptions.orc_writer_timezone.key!r}"
        )
    return tuple(notes)


def _refusing(handle: TableHandle) -> list[str]:
    options, refused = handle.options, dict[str, list[str]]()
    says = {}
    for operation in Operation:
        for key, option in options.forbidding(operation, traits_of(handle)):
            refused.setdefault(key, []).append(operation)
            says[key] = option.says
    values = options.to_dict()
    return [
        f"{key!r} = {values[key]!r} {says[key]}; this version refuses: {', '.join(operations)}"
        for key, operations in refused.items()
    ]


def _named(keys: list[str]) -> str:
    return ", ".join(map(repr, keys))
