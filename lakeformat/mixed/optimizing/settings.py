# SPDX-License-Identifier: Apache-2.0
"""The table properties that decide when and how a partition is optimized."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.properties import bool_property, int_property
from lakeformat.mixed.tree_node import bucket_mask

__all__ = ["AUTO_BUCKETS", "OptimizingSettings"]

_PREFIX = "self-optimizing."
_TARGET_BYTES, _OPEN_FILE_BYTES = 128 << 20, 4 << 20
_BUCKETS = 4
_BASE_BUCKETS = "base.file-index.hash-bucket"
AUTO_BUCKETS = "lake.auto-buckets"
"""The table property that lets the number of nodes of base files follow the size of a partition."""
_REFRESH = "base.refresh-interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizingSettings:
    """The table properties for optimizing, with their defaults.

    Sizes are in bytes, times in milliseconds; -1 turns an interval off.
    """

    target_size: int = _TARGET_BYTES
    fragment_ratio: int = 8
    """A file is a fragment if it is not larger than the target size divided by this number."""
    min_target_size_ratio: Decimal = Decimal("0.75")
    """A file is an undersized segment if it is not larger than this share of the target size."""
    minor_file_count: int = 12
    minor_interval: int = 3_600_000
    duplicate_ratio: Decimal = Decimal("0.1")
    """The share of deleted rows above which a file is rewritten."""
    full_interval: int = -1
    full_rewrite_all: bool = True
    base_buckets: int = _BUCKETS
    auto_buckets: bool = False
    """True if the number of nodes of base files follows the size of each partition."""
    base_refresh_interval: int = -1
    open_file_cost: int = _OPEN_FILE_BYTES
    max_file_count: int = 10_000
    """The largest number of files of the change store that one optimizing merges."""
    size_tolerance: int = 0
    """If above 0, it replaces the triggers of minor and major optimizing.

    The missing bytes of a file are ``min_target_size`` minus its size, and at least 0. A partition
    is due only if the root mean square of the missing bytes of its files is at least this number.
    """
    fallback_interval: int = -1
    """The time since the last minor optimizing after which ``size_tolerance`` has no effect; with
    -1 the tolerance always has its effect.
    """

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> OptimizingSettings:
        """Return the settings of a table; raise ``InvalidRequestError`` for a wrong value."""
        buckets = int_property(properties, _BASE_BUCKETS, _BUCKETS)
        bucket_mask(buckets, _BASE_BUCKETS)
        return cls(
            target_size=max(1, _whole(properties, "target-size", _TARGET_BYTES)),
            fragment_ratio=max(1, _whole(properties, "fragment-ratio", 8)),
            min_target_size_ratio=_part(properties, "min-target-size-ratio", "0.75"),
            minor_file_count=_whole(properties, "minor.trigger.file-count", 12),
            minor_interval=_interval(properties, f"{_PREFIX}minor.trigger.interval", 3_600_000),
            duplicate_ratio=_part(properties, "major.trigger.duplicate-ratio", "0.1"),
            full_interval=_interval(properties, f"{_PREFIX}full.trigger.interval", -1),
            full_rewrite_all=bool_property(
                properties, f"{_PREFIX}full.rewrite-all-files", default=True
            ),
            base_buckets=buckets,
            auto_buckets=bool_property(properties, AUTO_BUCKETS, default=False),
            base_refresh_interval=_interval(properties, _REFRESH, -1),
            open_file_cost=int_property(properties, "read.split.open-file-cost", _OPEN_FILE_BYTES),
            max_file_count=_whole(properties, "max-file-count", 10_000),
            size_tolerance=_whole(properties, "evaluation.file-size.mse-tolerance", 0),
            fallback_interval=_interval(properties, f"{_PREFIX}evaluation.fallback-interval", -1),
        )

    @property
    def fragment_size(self) -> int:
        """The largest size of a fragment."""
        return self.target_size // self.fragment_ratio

    @property
    def min_target_size(self) -> int:
        """The largest size of an undersized segment."""
        return int(self.target_size * self.min_target_size_ratio)


def _whole(properties: Mapping[str, str], key: str, default: int) -> int:
    return int_property(properties, f"{_PREFIX}{key}", default)


def _interval(properties: Mapping[str, str], key: str, default: int) -> int:
    return -1 if properties.get(key) == "-1" else int_property(properties, key, default)


def _part(properties: Mapping[str, str], key: str, default: str) -> Decimal:
    text = properties.get(f"{_PREFIX}{key}", default)
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal(-1)
    if not (found.is_finite() and found >= 0):
        raise InvalidRequestError(
            f"the table property {_PREFIX + key!r} is {text!r}, not a number of at least 0: "
            "correct it, or remove it to use the default"
        )
    return found
