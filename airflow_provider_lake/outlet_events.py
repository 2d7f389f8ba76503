# SPDX-License-Identifier: Apache-2.0
"""The asset events of a task, about the snapshots that it has published.

Watchers send events with the same payload; ``assets/change.py`` describes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.assets.change import describe_change
from airflow_provider_lake.assets.uri import (
    SCHEME,
    TableAddress,
    address_of,
    is_watched,
    split_table_name,
)
from airflow_provider_lake.compat import has_partition_keys
from airflow_provider_lake.hooks.lake import LakeHook

if TYPE_CHECKING:
    from airflow.sdk import AssetAlias, Context

    from lakeformat import Position, Table
    from lakeformat.tables.position import AnyPosition

__all__ = ["announce", "partition_keys"]


def announce(
    context: Context,
    outlets: Sequence[Any],
    result: Mapping[str, Any],
    *,
    lake_conn_id: str = LakeHook.default_conn_name,
    partition_column: str | None = None,
) -> dict[str, Any] | None:
    """Send an event about the published snapshots to each outlet of the table in ``result``;
    return the payload. Return None if nothing was published, if no outlet matches, or if the
    snapshot of an Iceberg or Mixed table has expired, so that its position is unknown.

    Outlets are assets declared with ``lake_asset``, or aliases, which get the table's asset. With
    ``partition_column``, the values of this column in the changed partitions become the event's
    partition keys, except for an alias. With this argument, ``announce`` raises
    ``UnsupportedError`` for a table of another format than Paimon, and ``LakeArgumentError`` if the
    table is not partitioned by this column, or if Airflow is older than 3.3.
    """
    meant = _address(result, lake_conn_id)
    targets = [] if meant is None else [*_targets(outlets, meant)]
    if meant is None or not targets or result.get("snapshot_id") is None:
        return None
    table = LakeHook(lake_conn_id).get_conn().table(meant.name)
    newest = int(result["snapshot_id"])
    if not table.numbers_snapshots and all(each.id != newest for each in table.snapshots()):
        return None
    upto = table.position(newest)
    if "previous_snapshot_id" in result:
        after = table.position(result["previous_snapshot_id"] or 0)
    else:
        after = table.position_before(upto)
    payload = _payload(table, meant.name, after, upto)
    keys = []
    if partition_column is not None:
        keys = partition_keys(table, partition_column, after=after, upto=upto)
    for outlet in targets:
        _send_event(context, outlet, meant, payload)
        if keys and not _is_alias(outlet):
            _add_keys(context["outlet_events"][outlet], keys)
    return payload


def _add_keys(event: Any, keys: Sequence[str]) -> None:
    if not has_partition_keys(event):
        raise LakeArgumentError(
            "argument 'partition_column' needs Airflow 3.3 or newer, because events of older "
            "versions have no partition keys: leave it out"
        )
    event.add_partitions(keys)


def partition_keys(
    table: Table, column: str, *, after: AnyPosition, upto: AnyPosition
) -> list[str]:
    """Return the sorted values of a partition column in all partitions changed by the snapshots
    after ``after``, up to and including ``upto``.

    Dates are ISO 8601 text; nulls are left out. Raises ``LakeArgumentError`` if ``column`` is not a
    partition column, and ``UnsupportedError`` for a table of another format than Paimon.
    """
    from lakeformat.types.types import TypeName, atomic, with_nullability

    table.require("touched_partitions")
    if column not in table.schema.partition_keys:
        keys = table.schema.partition_keys
        advice = (
            f"use one of {', '.join(keys)}"
            if keys
            else "leave out the argument, because the table has no partitions"
        )
        raise LakeArgumentError(
            f"partition_column {column!r} is not a partition column of {table.location}: {advice}"
        )
    touched = table.touched_partitions(after=after, upto=upto)
    is_day = atomic(TypeName.DATE) in {
        with_nullability(field.type, nullable=True)
        for field in table.schema.fields
        if field.name == column
    }
    values = (each.get(column) for each in touched)
    return sorted({_day(value) if is_day else value for value in values if value is not None})


def _day(text: str) -> str:
    """Return a day as ISO 8601 text. ``text`` is the day in a directory name: the number of days
    since 1970, or ISO 8601 text if the table option ``partition.legacy-name`` is false.
    """
    is_count = text.removeprefix("-").isdigit()
    return (date(1970, 1, 1) + timedelta(days=int(text))).isoformat() if is_count else text


def _address(result: Mapping[str, Any], lake_conn_id: str) -> TableAddress | None:
    try:
        return TableAddress(*split_table_name(str(result.get("table"))), lake_conn_id)
    except ValueError:  # a job on a whole database
        return None


def _targets(outlets: Sequence[Any], meant: TableAddress) -> Iterator[Any]:
    from airflow.sdk import Asset

    for outlet in outlets:
        is_lake = isinstance(outlet, Asset) and outlet.uri.startswith(f"{SCHEME}://")
        is_sent_here = is_lake and not is_watched(outlet.uri)
        if _is_alias(outlet) or (is_sent_here and address_of(outlet.uri) == meant):
            yield outlet


def _is_alias(outlet: Any) -> bool:
    from airflow.sdk import AssetAlias

    return isinstance(outlet, AssetAlias)


def _send_event(
    context: Context, outlet: Any, meant: TableAddress, payload: dict[str, Any]
) -> None:
    from airflow_provider_lake.assets.uri import lake_asset

    event = context["outlet_events"][outlet]
    if _is_alias(outlet):
        alias: AssetAlias = outlet
        asset = lake_asset(meant.name, lake_conn_id=meant.lake_conn_id)
        context["outlet_events"][alias].add(asset, extra=payload)
    else:
        event.extra.update(payload)


def _payload(table: Table, name: str, after: Position, upto: Position) -> dict[str, Any]:
    since = table.since(after, upto)
    if not since.snapshots:  # the snapshots have expired: only their positions are known
        return {
            "table": name,
            "snapshot_id": table.snapshot_id_at(upto),
            "previous_snapshot_id": table.snapshot_id_at(after),
            "position": str(upto),
            "previous_position": str(after),
            "missed": True,
        }
    return describe_change(name, table, since.snapshots, previous=after, missed=since.missed)
