# SPDX-License-Identifier: Apache-2.0
"""Catalogs map the names of tables to the directories of their files. A catalog finds the directory
of a table by the table's name, by a row in a SQL database, or by an entry in a catalog service.
"""

from __future__ import annotations

from lakeformat.catalog.base import Catalog
from lakeformat.catalog.drop import DropPlan
from lakeformat.catalog.filesystem import FileSystemCatalog
from lakeformat.catalog.names import BRANCH_PREFIX
from lakeformat.catalog.open import open_catalog

__all__ = [
    "BRANCH_PREFIX",
    "Catalog",
    "DropPlan",
    "FileSystemCatalog",
    "open_catalog",
]
