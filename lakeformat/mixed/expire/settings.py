# SPDX-License-Identifier: Apache-2.0
"""The table properties that decide how long snapshots and merged changes are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.properties import bool_property, int_property
from lakeformat.mixed.batch.open_batches import change_data_millis
from lakeformat.types.amounts import parse_duration

__all__ = ["ExpirySettings"]

_KEPT_AGE, _KEPT_COUNT = "snapshot.keep.duration", "snapshot.keep.min-count"
_FLINK = "snapshot.keep.flink.checkpoint-retention"
_ENABLED, _OF_DATA = "table-expire.enabled", "data-expire.enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpirySettings:
    """The properties of the base store with Amoro's names and defaults; ages in milliseconds."""

    change_age: int
    """The age above which merged changes are removed, and snapshots of the change store expire."""
    base_age: int
    """The age above which snapshots of the base store expire."""
    least: int
    """The least number of snapshots that each store keeps."""
    flink_age: int
    """The age up to which the newest checkpoint of Flink is kept in each store."""
    is_enabled: bool
    """False if the maintenance of the table must not expire snapshots."""
    keeps_written: bool
    """True if Amoro's expiry of data needs the newest snapshot that no optimizing made."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ExpirySettings:
        """Return the settings of a table; raise ``InvalidRequestError`` for a wrong value."""
        return cls(
            change_age=change_data_millis(properties),
            base_age=_duration(properties, _KEPT_AGE, "720min"),
            least=max(1, int_property(properties, _KEPT_COUNT, 1)),
            flink_age=_duration(properties, _FLINK, "7d"),
            is_enabled=bool_property(properties, _ENABLED, default=True),
            keeps_written=bool_property(properties, _OF_DATA, default=False),
        )


def _duration(properties: Mapping[str, str], key: str, default: str) -> int:
    text = properties.get(key, default)
    try:
        return parse_duration(text)
    except ValueError as reason:
        raise InvalidRequestError(
            f"the table property {key!r} is {text!r}, not a duration such as {default!r} "
            f"({reason}): correct it, or remove it to use the default"
        ) from None
