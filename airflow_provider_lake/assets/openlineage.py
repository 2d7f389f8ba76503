# SPDX-License-Identifier: Apache-2.0
"""Tables as OpenLineage datasets, named by their location, as Spark and Flink name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_lake.assets.uri import TableAddress, address_of
from airflow_provider_lake.hooks.lake import LakeHook

if TYPE_CHECKING:
    from airflow.providers.common.compat.openlineage.facet import Dataset
    from airflow.sdk import Asset

__all__ = ["dataset_name", "location_of", "to_dataset"]


def to_dataset(asset: Asset, lineage_context: Any) -> Dataset:
    """Return the OpenLineage dataset of an asset. Airflow calls this function for the scheme
    ``lake``; the context is ignored. Raise ``ValueError`` if the URI is not that of a table.
    """
    from airflow.providers.common.compat.openlineage.facet import Dataset

    namespace, name = dataset_name(location_of(address_of(asset.uri)))
    return Dataset(namespace=namespace, name=name)


def location_of(address: TableAddress) -> str:
    """Return the URI of a table's directory; the table need not exist."""
    catalog = LakeHook(address.lake_conn_id).get_conn()
    table = address.table.partition("$")[0]
    return catalog.location_of(f"{address.database}.{table}")


def dataset_name(location: str) -> tuple[str, str]:
    """Return OpenLineage's namespace of a directory, such as ``file`` or ``s3://bucket``, and the
    name of its dataset, which is the path.

        >>> dataset_name("file:///data/shop.db/orders")
        ('file', '/data/shop.db/orders')
        >>> dataset_name("s3://bucket/wh/shop.db/orders")
        ('s3://bucket', 'wh/shop.db/orders')
    """
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        return "file", parts.path
    return f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
