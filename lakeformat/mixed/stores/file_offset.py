# SPDX-License-Identifier: Apache-2.0
"""The hidden column ``_file_offset``, which only change stores have."""

from __future__ import annotations

from lakeformat.iceberg.types import Field, PrimitiveType

__all__ = ["FILE_OFFSET"]

FILE_OFFSET = Field(2_147_482_645, "_file_offset", PrimitiveType("long"))
"""The offset of a change in its transaction."""
