# SPDX-License-Identifier: Apache-2.0
"""Commits the files that all tasks have written, once, in the driver."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import lakeformat as lake
from lakeformat.executor import Executor
from lakeformat.tables.arguments import Conflict, Overwritten
from lakeformat.tables.divided_writes import BegunBatch
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.tables.position import AnyPosition

__all__ = ["publish"]

_log = logging.getLogger(__name__)


def publish(
    table: lake.Table,
    messages: list[lake.CommitMessage],
    *,
    overwrite: Overwritten | None = None,
    where: str | None = None,
    commit: lake.CommitId | None = None,
    watermark: int | None = None,
    properties: Mapping[str, str] | None = None,
    read_snapshot: AnyPosition | str | None = None,
    conflict: Conflict | None = None,
    upsert_by: Sequence[str] | None = None,
    executor: Executor | None = None,
    batch: BegunBatch | None = None,
) -> lake.CommitReport:
    """Commit the files that tasks have written, and return the report of the commit.

    If the commit fails, or if an earlier attempt has already published the rows, the files are
    deleted. But they are kept if the failed commit may have published them. If ``batch``, a begun
    batch of a Mixed table, is given, its commit publishes the files. ``upsert_by`` is the key by
    which rows replace stored rows; ``executor`` runs the search for the stored rows. A table with
    unique keys needs no search. ``where`` is a condition on the rows to overwrite. It replaces
    ``overwrite``, and needs a batch.
    """
    more: dict[str, Any] = {}
    if upsert_by is not None and not table.has_unique_keys:
        more = {"upsert_by": upsert_by, "executor": executor}
    if conflict is not None and batch is None:
        more["conflict"] = conflict
    publish_files: Callable[..., lake.CommitReport] = table.commit
    if batch is not None:
        publish_files = batch.commit
    else:
        more |= {"watermark": watermark, "read_snapshot": read_snapshot}
    with kept_if_published(partial(_remove, table, messages)):
        if batch is not None:
            table.require_arguments("commit", watermark=watermark, read_snapshot=read_snapshot)
        if where is not None:
            more["where"], overwrite = where, None
        report = publish_files(
            messages, overwrite=overwrite, commit=commit, properties=properties, **more
        )
    if report.unpublished_files:  # another attempt has committed first: the table uses its files
        table.abort(messages)
    return report


def _remove(table: lake.Table, messages: list[lake.CommitMessage]) -> None:
    """Delete the files of ``messages``.

    A failure is only logged, so that the caller raises the error of the commit.
    """
    try:
        table.abort(messages)
    except lake.LakeError as reason:
        _log.warning(
            "unreferenced files of a failed commit could not be deleted from %s (%s): "
            "remove_orphans deletes them later",
            table.location,
            reason,
        )
