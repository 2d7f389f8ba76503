# SPDX-License-Identifier: Apache-2.0
"""Finds the tables with enough files to compact, before a compaction starts."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.maintenance.policy import Gate, PolicyError
from airflow_provider_lake.sensors.conditions import CompactionNeeded

__all__ = ["due_compaction", "due_tables"]

_log = logging.getLogger(__name__)


def due_compaction(
    table: str,
    *,
    lake_conn_id: str = LakeHook.default_conn_name,
    strategy: str = "full",
    min_files: int = 1,
    max_bytes: int | None = None,
) -> dict[str, Any] | None:
    """Return the numbers of files and bytes that a compaction of a table would read.

    Log the reason and return None if it would read fewer than ``min_files`` files or more than
    ``max_bytes`` bytes, or if the table is missing. Raises ``LakeArgumentError`` for limits
    below 1.
    """
    from lakeformat import NotFoundError
    from lakeformat.types.byte_size import size
    from lakeformat.types.count_text import counted

    _check(min_files, max_bytes)
    wanted = CompactionNeeded(strategy=strategy, min_files=min_files)
    try:
        found = wanted.check(table, LakeHook(lake_conn_id).get_conn().table(table))
    except NotFoundError as reason:
        _log.warning("nothing to compact: %s", reason)
        return None
    if found is None:
        _log.info(
            "%s: not compacted, because the compaction would read fewer than %s",
            table,
            counted(min_files, "file"),
        )
        return None
    if max_bytes is not None and found["bytes"] > max_bytes:
        _log.warning(
            "%s: not compacted, because the compaction would read %s, more than max_bytes=%d: "
            "raise max_bytes, or compact some partitions by hand",
            table,
            size(found["bytes"]),
            max_bytes,
        )
        return None
    return found


def due_tables(
    database: str,
    *,
    lake_conn_id: str = LakeHook.default_conn_name,
    strategy: str = "minor",
    min_files: int = 5,
    max_bytes: int | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Return arguments for ``expand_kwargs``: one dict for each table of a database that has enough
    files to compact.

    Tables with the most files come first. ``max_bytes`` limits the bytes of all tables together:
    the tables beyond this limit wait for the next run, but the first table is always included. A
    table that is damaged or not supported comes last, so that its own task fails with the reason. A
    table whose format has no compaction is left out. ``arguments`` are added to each dict. Raises
    ``LakeArgumentError`` for limits below 1.
    """
    from lakeformat import CorruptTableError, UnsupportedError

    _check(min_files, max_bytes)
    catalog = LakeHook(lake_conn_id).get_conn()
    found, unwell = [], []
    for name in (f"{database}.{name}" for name in catalog.list_tables(database)):
        try:
            asked = due_compaction(
                name, lake_conn_id=lake_conn_id, strategy=strategy, min_files=min_files
            )
        except (CorruptTableError, UnsupportedError) as reason:
            if isinstance(reason, UnsupportedError) and reason.lacks is not None:
                _log.info("%s is skipped: %s", name, reason.lacks)
                continue
            _log.error(
                "%s cannot be read (%s), so the task that compacts it will fail", name, reason
            )
            unwell.append({"table": name})
        else:
            found += [asked] if asked is not None else []
    chosen = _within(sorted(found, key=lambda each: (-each["files"], each["table"])), max_bytes)
    chosen += unwell
    more = {"strategy": strategy, "lake_conn_id": lake_conn_id, **(arguments or {})}
    return [{"table": each["table"], **more} for each in chosen]


def _check(min_files: int, max_bytes: int | None) -> None:
    """Raise ``LakeArgumentError``, which fails the task without a retry, for a limit below 1."""
    try:
        Gate(min_files=min_files, max_bytes=max_bytes)
    except PolicyError as reason:
        raise LakeArgumentError(str(reason)) from None


def _within(found: Sequence[dict[str, Any]], max_bytes: int | None) -> list[dict[str, Any]]:
    from lakeformat.types.byte_size import size

    chosen: list[dict[str, Any]] = []
    used = 0
    for each in found:
        if max_bytes is not None and chosen and used + each["bytes"] > max_bytes:
            _log.info(
                "%s with %s waits for the next run: this run has %s left of max_bytes=%d",
                each["table"],
                size(each["bytes"]),
                size(max(0, max_bytes - used)),
                max_bytes,
            )
            continue
        chosen.append(each)
        used += each["bytes"]
    return chosen
