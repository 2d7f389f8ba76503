# SPDX-License-Identifier: Apache-2.0
"""The parameters of a table in Hive and Glue; ``metadata_location`` names the current metadata
file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from lakeformat.catalog.names import TableName
from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.mixed.stores.mixed_hive import refuse_mixed_hive

__all__ = ["first_parameters", "metadata_file_in", "parameters_after"]

_TYPE, _ICEBERG, _FILE = "table_type", "iceberg", "metadata_location"
_PREVIOUS, _EXTERNAL = "previous_metadata_location", "EXTERNAL"
_OWN = {_TYPE, _FILE, _PREVIOUS, _EXTERNAL}
"""Parameters that mark an Iceberg table; table properties of the same names do not change them."""
_COUNTS = {"numFiles": "data-files", "numRows": "records", "totalSize": "files-size"}


def metadata_file_in(parameters: Mapping[str, str] | None, name: TableName) -> str:
    """Return the URI of a table's metadata file from its parameters in Hive or Glue.

    Raise ``InvalidRequestError`` if the table is not an Iceberg table, and ``UnsupportedError`` if
    it is a Mixed-Hive table.
    """
    found = parameters or {}
    refuse_mixed_hive(found, str(name))
    if found.get(_TYPE, "").lower() != _ICEBERG or not found.get(_FILE):
        raise InvalidRequestError(
            f"table '{name}' is not an Iceberg table: its parameter {_TYPE} is "
            f"{found.get(_TYPE) or 'not set'}, and {_FILE} is "
            f"{found.get(_FILE) or 'not set'}. Read it with the program that created it"
        )
    return found[_FILE]


def parameters_after(
    parameters: Mapping[str, str] | None, new: str, base: TableMetadata, metadata: TableMetadata
) -> dict[str, str]:
    """Return the parameters of a table after a commit, with ``new`` as its metadata file.

    Table properties that the commit changed are copied to the parameters, and properties that it
    removed are removed from them. Properties with a name in ``_OWN`` are ignored. Parameters of
    other programs are kept. Parameters with which Java describes the newest snapshot are updated if
    the table has them.
    """
    found = {
        key: value
        for key, value in (parameters or {}).items()
        if key in _OWN or key not in base.properties or key in metadata.properties
    }
    changed = {
        key: value
        for key, value in metadata.properties.items()
        if base.properties.get(key) != value and key not in _OWN
    }
    known = {key: value for key, value in _facts(metadata).items() if key in found}
    return {**found, **changed, **known, _PREVIOUS: found[_FILE], _FILE: new}


def first_parameters(address: str, metadata: TableMetadata) -> dict[str, str]:
    """Return the parameters of a new table whose metadata file has the URI ``address``."""
    kind = {_TYPE: _ICEBERG.upper(), _FILE: address}
    return {**metadata.properties, _EXTERNAL: "TRUE", **kind}


def _facts(metadata: TableMetadata) -> dict[str, str]:
    """Return the parameters with which Java describes the newest snapshot."""
    facts = {"snapshot-count": str(len(metadata.snapshots))}
    if (snapshot := metadata.current_snapshot) is not None:
        summary = snapshot.summary
        facts |= {
            "current-snapshot-id": str(snapshot.snapshot_id),
            "current-snapshot-timestamp-ms": str(snapshot.timestamp_ms),
            "current-snapshot-summary": json.dumps({**summary}),
        }
        facts |= {
            key: summary[f"total-{count}"]
            for key, count in _COUNTS.items()
            if f"total-{count}" in summary
        }
    return facts
