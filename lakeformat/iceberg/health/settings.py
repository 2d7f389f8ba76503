# SPDX-License-Identifier: Apache-2.0
"""The table properties that define a healthy table, with the defaults of Iceberg's Java code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.properties import bool_property, int_property

__all__ = ["HealthSettings", "settings_of"]

_TARGET_FILE_SIZE = "write.target-file-size-bytes"
_MANIFEST_TARGET_SIZE = "commit.manifest.target-size-bytes"
_MANIFESTS_TO_MERGE = "commit.manifest.min-count-to-merge"
_PREVIOUS_METADATA = "write.metadata.previous-versions-max"
_DEFAULTS = {
    _TARGET_FILE_SIZE: 512 << 20,
    _MANIFEST_TARGET_SIZE: 8 << 20,
    _MANIFESTS_TO_MERGE: 100,
    _PREVIOUS_METADATA: 100,
}
_COLLECTED = "gc.enabled"


@dataclass(frozen=True, slots=True)
class HealthSettings:
    """The table properties that define a healthy table, parsed."""

    target_file_size: int
    manifest_target_size: int
    manifests_to_merge: int
    """An append in Java merges manifests if there are at least this many."""
    previous_metadata_files: int
    """The largest number of earlier metadata files in the metadata log."""
    may_expire: bool
    notes: tuple[str, ...]


def settings_of(properties: Mapping[str, str]) -> HealthSettings:
    """Return the settings; an invalid value is replaced by the default, and ``notes`` has the
    error.
    """
    notes, numbers, may_expire = [], dict(_DEFAULTS), True
    for key, default in _DEFAULTS.items():
        try:
            numbers[key] = int_property(properties, key, default) or default
        except InvalidRequestError as reason:
            notes.append(str(reason))
    try:
        may_expire = bool_property(properties, _COLLECTED, default=True)
    except InvalidRequestError as reason:
        notes.append(str(reason))
    if not may_expire:
        notes.append(
            f"{_COLLECTED!r} = 'false': expiry and removal of orphan files are forbidden, because "
            "other tables may use the files of this one"
        )
    return HealthSettings(
        target_file_size=numbers[_TARGET_FILE_SIZE],
        manifest_target_size=numbers[_MANIFEST_TARGET_SIZE],
        manifests_to_merge=numbers[_MANIFESTS_TO_MERGE],
        previous_metadata_files=numbers[_PREVIOUS_METADATA],
        may_expire=may_expire,
        notes=tuple(notes),
    )
