# SPDX-License-Identifier: Apache-2.0
"""Opens a catalog by its warehouse and options."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, overload

from lakeformat.catalog.base import Catalog
from lakeformat.catalog.filesystem import FileSystemCatalog
from lakeformat.catalog.options import FILESYSTEM, CatalogOptions
from lakeformat.catalog.texts import require_options
from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import InvalidRequestError
from lakeformat.storage import is_storage_option, open_storage
from lakeformat.tables.table import offering_arguments
from lakeformat.types.closest import closest

if TYPE_CHECKING:
    from lakeformat.catalog.iceberg import IcebergCatalog

__all__ = ["open_catalog"]

_FORMATS = ("paimon", "iceberg")


@overload
def open_catalog(
    warehouse: str,
    *,
    format: Literal["paimon"] | None = None,
    metastore: str | None = None,
    uri: str | None = None,
    options: Mapping[str, str] | None = None,
    environment: Environment = SYSTEM,
) -> Catalog: ...
@overload
def open_catalog(
    warehouse: str,
    *,
    format: Literal["iceberg"],
    metastore: str | None = None,
    uri: str | None = None,
    options: Mapping[str, str] | None = None,
    environment: Environment = SYSTEM,
) -> IcebergCatalog: ...
@overload
def open_catalog(
    warehouse: str,
    *,
    format: str | None,
    metastore: str | None = None,
    uri: str | None = None,
    options: Mapping[str, str] | None = None,
    environment: Environment = SYSTEM,
) -> Catalog | IcebergCatalog: ...
@offering_arguments
def open_catalog(
    warehouse: str,
    *,
    format: str | None = None,
    metastore: str | None = None,
    uri: str | None = None,
    options: Mapping[str, str] | None = None,
    environment: Environment = SYSTEM,
) -> Catalog | IcebergCatalog:
    """Open the catalog of a warehouse: a local path or a URI such as ``s3://bucket/warehouse``.

    ``format="iceberg"`` opens a catalog of Iceberg tables: see ``docs/iceberg-catalogs.md``. All
    that follows is about Paimon tables, the default.

    Databases and tables are directories of the warehouse. With ``metastore="jdbc"`` they are rows
    in the SQL database of ``uri``: a SQLAlchemy URL, or Java's ``jdbc:sqlite:`` and
    ``jdbc:postgresql:``. ``options`` are Paimon's catalog options, and options of the storage such
    as ``s3.endpoint``: see ``docs/storage.md``. They may include ``format``, ``metastore`` and
    ``uri``. Unknown or contradictory options raise ``InvalidRequestError``.
    """
    if not isinstance(warehouse, str | os.PathLike):
        raise InvalidRequestError(f"warehouse must be a path or a URI, got {warehouse!r}")
    said = require_options(options)
    for key, value in (("format", format), ("metastore", metastore), ("uri", uri)):
        if value is None:
            continue
        if said.get(key, value) != value:
            raise InvalidRequestError(
                f"argument {key} and the option {key!r} differ: give only one of them"
            )
        said[key] = value
    if _format(said.pop("format", "paimon")) == "iceberg":
        # A catalog of Paimon tables does not need this module.
        from lakeformat.catalog.iceberg.open import open_iceberg_catalog

        return open_iceberg_catalog(warehouse, said, environment)
    of_storage = {key: value for key, value in said.items() if _is_of_storage(key)}
    settings = CatalogOptions({key: said[key] for key in said if key not in of_storage})
    storage, root = open_storage(warehouse, of_storage)
    if settings.get(CatalogOptions.metastore) == FILESYSTEM:
        return FileSystemCatalog(storage, root, environment, settings)
    return _sql_catalog()(storage, root, environment, settings)


def _format(name: object) -> object:
    if name not in _FORMATS:
        raise InvalidRequestError(
            f"format must be {' or '.join(map(repr, _FORMATS))}, got {name!r}"
            f"{closest(name, _FORMATS)}"
        )
    return name


def _is_of_storage(key: object) -> bool:
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
