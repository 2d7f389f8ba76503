# SPDX-License-Identifier: Apache-2.0
"""Manifests as columns: decoded, encoded and merged without a Python object per entry."""

from __future__ import annotations

from lakeformat.paimon.metadata.manifest_columns.entries import ManifestColumns, columns_of
from lakeformat.paimon.metadata.manifest_columns.read import decode_manifest

__all__ = ["ManifestColumns", "columns_of", "decode_manifest"]
