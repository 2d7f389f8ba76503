# SPDX-License-Identifier: Apache-2.0
"""Makes the request of a REST commit from the metadata before and after the commit.

The service gets only the changes (``updates``), and writes the metadata file itself. The
``requirements`` are the UUID, the references, the current ids and the last assigned ids before the
commit. They also demand that new references do not exist yet. If another writer was first, a
requirement is not met, and the service refuses the commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.metadata.metadata_json import metadata_to_json
from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["commit_request", "have_same_state"]

Json = Mapping[str, Any]
_LISTS = (  # list of the metadata, key of an entry, update that adds an entry
    ("schemas", "schema-id", "add-schema", "schema"),
    ("partition-specs", "spec-id", "add-spec", "spec"),
    ("sort-orders", "order-id", "add-sort-order", "sort-order"),
    ("snapshots", "snapshot-id", "add-snapshot", "snapshot"),
)
_CURRENT = (  # member of the metadata, update that sets it
    ("current-schema-id", "set-current-schema", "schema-id"),
    ("default-spec-id", "set-default-spec", "spec-id"),
    ("default-sort-order-id", "set-default-sort-order", "sort-order-id"),
)
_REMOVED = {
    "schemas": ("remove-schemas", "schema-ids"),
    "partition-specs": ("remove-partition-specs", "spec-ids"),
    "snapshots": ("remove-snapshots", "snapshot-ids"),
}
_STATISTICS = ("statistics", "partition-statistics")
_WRITTEN_BY_SERVICE = ("last-updated-ms", "metadata-log", "snapshot-log")


def commit_request(base: TableMetadata, changed: TableMetadata) -> dict[str, Any]:
    """Return the members ``requirements`` and ``updates`` of a commit from ``base`` to ``changed``.

    Raise ``UnsupportedError`` if the two have different UUIDs.
    """
    before, after = metadata_to_json(base), metadata_to_json(changed)
    return {
        "requirements": [*_requirements(before, after)],
        "updates": [*_updates(before, after)],
    }


def have_same_state(one: TableMetadata, other: TableMetadata) -> bool:
    """Return True if two states of a table's metadata are equal, except for the members that the
    service writes: ``snapshot-log``, ``metadata-log`` and ``last-updated-ms``.
    """
    first, second = ({**metadata_to_json(each)} for each in (one, other))
    for member in _WRITTEN_BY_SERVICE:
        first.pop(member, None)
        second.pop(member, None)
    return first == second


def _requirements(before: Json, after: Json) -> Iterator[Json]:
    yield {"type": "assert-table-uuid", "uuid": before.get("table-uuid")}
    missing = {name: {"snapshot-id": None} for name in ("main", *after["refs"])}
    for name, reference in {**missing, **before["refs"]}.items():
        yield {
            "type": "assert-ref-snapshot-id",
            "ref": name,
            "snapshot-id": reference["snapshot-id"],
        }
    for kind, key, member in (
        ("assert-last-assigned-field-id", "last-assigned-field-id", "last-column-id"),
        ("assert-current-schema-id", "current-schema-id", "current-schema-id"),
        ("assert-last-assigned-partition-id", "last-assigned-partition-id", "last-partition-id"),
        ("assert-default-spec-id", "default-spec-id", "default-spec-id"),
        ("assert-default-sort-order-id", "default-sort-order-id", "default-sort-order-id"),
    ):
        yield {"type": kind, key: before[member]}


def _updates(before: Json, after: Json) -> Iterator[Json]:
    if before.get("table-uuid") != after.get("table-uuid"):
        raise UnsupportedError(
            "a REST catalog cannot change the UUID of a table: drop the table and create it again"
        )
    if before["format-version"] != after["format-version"]:
        yield {"action": "upgrade-format-version", "format-version": after["format-version"]}
    if before["location"] != after["location"]:
        yield {"action": "set-location", "location": after["location"]}
    yield from _properties(before["properties"], after["properties"])
    for listed, key, action, member in _LISTS:
        known = _by(before[listed], key)
        for entry in after[listed]:
            if entry[key] not in known:
                yield {"action": action, member: entry, **_last_column(listed, after)}
    for member, action, key in _CURRENT:
        if before[member] != after[member]:
            yield {"action": action, key: after[member]}
    yield from _references(before["refs"], after["refs"])
    for listed in _STATISTICS:
        yield from _statistics(listed, before, after)
    for listed, key, _, _ in _LISTS:
        gone = [*(_by(before[listed], key).keys() - _by(after[listed], key).keys())]
        if gone and listed in _REMOVED:
            action, member = _REMOVED[listed]
            yield {"action": action, member: sorted(gone)}


def _properties(before: Json, after: Json) -> Iterator[Json]:
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    if changed:
        yield {"action": "set-properties", "updates": changed}
    if removed := sorted(before.keys() - after.keys()):
        yield {"action": "remove-properties", "removals": removed}


def _references(before: Json, after: Json) -> Iterator[Json]:
    for name, reference in after.items():
        if before.get(name) != reference:
            yield {"action": "set-snapshot-ref", "ref-name": name, **reference}
    for name in sorted(before.keys() - after.keys()):
        yield {"action": "remove-snapshot-ref", "ref-name": name}


def _statistics(listed: str, before: Json, after: Json) -> Iterator[Json]:
    known, kept = _by(before[listed], "snapshot-id"), _by(after[listed], "snapshot-id")
    for snapshot_id, file in kept.items():
        if known.get(snapshot_id) != file:
            yield {"action": f"set-{listed}", "snapshot-id": snapshot_id, listed: file}
    for snapshot_id in sorted(known.keys() - kept.keys()):
        yield {"action": f"remove-{listed}", "snapshot-id": snapshot_id}


def _last_column(listed: str, after: Json) -> Json:
    """Return a dict with ``last-column-id`` if ``listed`` is ``schemas``, else an empty dict.

    Some services require this id together with a new schema.
    """
    return {"last-column-id": after["last-column-id"]} if listed == "schemas" else {}


def _by(entries: Sequence[Json], key: str) -> dict[Any, Json]:
    return {each[key]: each for each in entries}
