# SPDX-License-Identifier: Apache-2.0
"""Opens a catalog by its warehouse and options."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lakeformat.catalog.base import Catalog
from lakeformat.catalog.filesystem import FileSystemCatalog
from lakeformat.catalog.options import FILESYSTEM, CatalogOptions
from lakeformat.catalog.texts import require_mapping
from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import InvalidRequestError
from lakeformat.storage import is_storage_option, open_storage

__all__ = ["open_catalog"]


def open_catalog(
    warehouse: str,
    *,
    metastore: str | None = None,
    uri: str | None = None,
    options: Mapping[str, str] | None = None,
    environment: Environment = SYSTEM,
) -> Catalog:
    """Open the catalog of a warehouse: a local path or a URI such as ``s3://bucket/warehouse``.

    The databases and tables are its directories, or with ``metastore="jdbc"`` rows in the SQL
    database of ``uri``: a SQLAlchemy URL, or Java's ``jdbc:sqlite:`` and ``jdbc:postgresql:``.
    ``options`` are Paimon's catalog options, which may also hold both arguments, and options of the
    storage such as ``s3.endpoint``: see ``docs/storage.md``.
    """
    if not isinstance(warehouse, str | os.PathLike):
        raise InvalidRequestError(f"warehouse must be a path or a URI, got {warehouse!r}")
    said = require_mapping("options", options)
    for key, value in (("metastore", metastore), ("uri", uri)):
        if value is None:
            continue
        if said.get(key, value) != value:
            raise InvalidRequestError(
                f"argument {key} and the option {key!r} differ: give only one of them"
            )
        said[key] = value
    of_storage = {key: value for key, value in said.items() if _is_of_storage(key)}
    settings = CatalogOptions({key: said[key] for key in said if key not in of_storage})
    storage, root = open_storage(warehouse, of_storage)
    if settings.get(CatalogOptions.metastore) == FILESYSTEM:
        return FileSystemCatalog(storage, root, environment, settings)
    return _sql_catalog()(storage, root, environment, settings)


def _is_of_storage(key: object) -> bool:
    """Return True for a storage option; any other object is left to the check of catalog
    options.
    """
    return isinstance(key, str) and is_storage_option(key)


def _sql_catalog() -> type[Catalog]:
    try:
        from lakeformat.catalog.sql import SqlCatalog
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sqlalchemy":
            raise
        raise InvalidRequestError(
            "the jdbc metastore needs SQLAlchemy: pip install 'airflow-provider-lake[jdbc]'"
        ) from None
    return SqlCatalog
