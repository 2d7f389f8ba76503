# SPDX-License-Identifier: Apache-2.0
"""Checks the values of table properties before a Mixed table gets these properties."""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.properties import bool_property, int_property
from lakeformat.mixed.expire.settings import ExpirySettings
from lakeformat.mixed.optimizing.settings import OptimizingSettings
from lakeformat.mixed.stores.properties import UPSERT
from lakeformat.mixed.tree_node import bucket_mask
from lakeformat.mixed.write.change_writer import CHANGE_BUCKETS

__all__ = ["require_valid_properties"]

_FORMAT = "write.format.default"
_WRITTEN = "parquet"


def require_valid_properties(properties: Mapping[str, str]) -> None:
    """Raise ``InvalidRequestError`` for a value with which each later write, optimizing or expiry
    would fail.
    """
    if CHANGE_BUCKETS in properties:
        bucket_mask(int_property(properties, CHANGE_BUCKETS, 1), CHANGE_BUCKETS)
    bool_property(properties, UPSERT, default=True)
    OptimizingSettings.of(properties)
    ExpirySettings.of(properties)
    if (given := properties.get(_FORMAT, _WRITTEN)).lower() != _WRITTEN:
        raise InvalidRequestError(
            f"the table property {_FORMAT!r} is {given!r}, but this library writes Mixed tables "
            f"only as {_WRITTEN!r}: set it to {_WRITTEN!r}, or leave it out"
        )
