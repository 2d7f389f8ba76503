# SPDX-License-Identifier: Apache-2.0
"""Opens a catalog of Iceberg tables by its warehouse and options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from lakeformat.catalog.iceberg.catalog import IcebergCatalog
from lakeformat.catalog.iceberg.catalog_files import CatalogFiles
from lakeformat.catalog.iceberg.metastore import Metastore
from lakeformat.catalog.iceberg.named_files import NamedFilesMetastore
from lakeformat.catalog.iceberg.options import GLUE, HIVE, PATH, REST, SQL, IcebergOptions
from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import InvalidRequestError
from lakeformat.storage import open_storage

if TYPE_CHECKING:
    from lakeformat.catalog.iceberg.rest import RestMetastore

__all__ = ["named_files_metastore", "open_iceberg_catalog", "rest_metastore"]

_EXTRA = "pip install 'airflow-provider-lake[iceberg]'"


def open_iceberg_catalog(
    warehouse: str, options: Mapping[str, str], environment: Environment
) -> IcebergCatalog:
    """Open a catalog of Iceberg tables; neither the warehouse nor the service is contacted yet."""
    checked = IcebergOptions.of(options)
    if checked.metastore == REST and not _is_address(warehouse):
        files = CatalogFiles(None, "", checked.storage, checked.external_roots)
        location = warehouse
    else:
        storage, root = open_storage(warehouse, checked.storage)
        files = CatalogFiles(storage, root, checked.storage, checked.external_roots)
        location = storage.uri(root)
    return IcebergCatalog(_metastore(checked, files, warehouse, environment), location, environment)


def named_files_metastore(
    options: IcebergOptions, files: CatalogFiles, environment: Environment
) -> NamedFilesMetastore:
    """Return the SQL, Hive or Glue metastore that the options name."""
    found = _metastore(options, files, "", environment)
    assert isinstance(found, NamedFilesMetastore)
    return found


def rest_metastore(options: IcebergOptions, files: CatalogFiles, warehouse: str) -> RestMetastore:
    """Return the metastore of the REST service that ``options`` name.

    ``warehouse`` is the name of a warehouse in the service; "" names none.
    """
    found = _metastore(options, files, warehouse, SYSTEM)
    assert not isinstance(found, NamedFilesMetastore)
    return cast("RestMetastore", found)


def _is_address(warehouse: str) -> bool:
    """Return True if ``warehouse`` is a path or URI, which has a slash.

    Return False if it is the name of a warehouse in the service of a REST catalog.
    """
    return "/" in warehouse


def _metastore(
    options: IcebergOptions, files: CatalogFiles, warehouse: str, environment: Environment
) -> Metastore:
    try:
        return _load(options, files, warehouse, environment)
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package == "lakeformat":
            raise
        # boto3 is large, so the extra "iceberg" does not install it.
        how = "pip install boto3" if package in ("boto3", "botocore") else _EXTRA
        raise InvalidRequestError(
            f"the {options.metastore} metastore needs the package {package}: {how}"
        ) from None


def _load(
    options: IcebergOptions, files: CatalogFiles, warehouse: str, environment: Environment
) -> Metastore:
    """Return the chosen metastore. Only its module is imported, because each metastore needs other
    packages.
    """
    if options.metastore == PATH:
        from lakeformat.catalog.iceberg.path import PathMetastore

        return PathMetastore(files, environment)
    if options.metastore == SQL:
        from lakeformat.catalog.iceberg.sql import SqlMetastore

        return SqlMetastore(options, files, environment)
    if options.metastore == HIVE:
        from lakeformat.catalog.iceberg.hive import HiveMetastore

        return HiveMetastore(options, files, environment)
    if options.metastore == GLUE:
        from lakeformat.catalog.iceberg.glue import GlueMetastore

        return GlueMetastore(options, files, environment)
    from lakeformat.catalog.iceberg.rest import RestMetastore

    return RestMetastore(options, files, warehouse)
