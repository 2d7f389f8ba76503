# SPDX-License-Identifier: Apache-2.0
"""Catalogs of Iceberg tables: in directories, in a SQL database, or in a catalog service."""

from __future__ import annotations

from lakeformat.catalog.iceberg.catalog import IcebergCatalog

__all__ = ["IcebergCatalog"]
