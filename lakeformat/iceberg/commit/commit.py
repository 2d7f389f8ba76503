# SPDX-License-Identifier: Apache-2.0
"""Commits one change of table metadata, and tries again if another writer was first.

Each attempt reads the newest metadata, applies the change, and publishes the result if that
metadata is still the newest. If another writer was first, the next attempt applies the change to
the metadata of that writer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from lakeformat.errors import CommitConflictError, TableReplacedError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import following
from lakeformat.iceberg.properties import int_property
from lakeformat.types.count_text import counted

__all__ = ["Change", "CommitResult", "commit_metadata"]

_log = logging.getLogger(__name__)

Change = Callable[[LoadedMetadata], TableMetadata | None]
"""A function that returns changed metadata; None if there is nothing to publish.

It is called once for each attempt. Any error that it raises ends the commit.
"""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The result of a commit that raised no error."""

    loaded: LoadedMetadata
    """The metadata that the commit published, or the newest metadata if there was nothing to
    publish.
    """
    attempts: int
    is_published: bool


@dataclass(frozen=True, slots=True)
class _Retries:
    """The limits for repeated attempts, from the table properties ``commit.retry.*``."""

    number: int
    least_millis: int
    longest_millis: int
    total_millis: int


def commit_metadata(
    handle: TableHandle, change: Change, *, planned: LoadedMetadata | None = None
) -> CommitResult:
    """Apply ``change`` to the newest metadata, and publish the result if anything changed.

    ``planned`` is the metadata for which the change was planned, if it was loaded earlier.
    ``TableReplacedError`` means that the table was dropped and created again meanwhile.
    ``CommitConflictError`` means that other writers were first in each attempt, or that the change
    itself found a conflict. ``UnsupportedError`` means that the table cannot be changed here, for
    example because it was opened by the address of a metadata file, or because its metadata is
    published for a Paimon table. After ``CommitOutcomeUnknownError`` the change may be published or
    not.
    """
    handle.pointer.require_writable()
    first = planned or handle.load()
    started = handle.environment.now_millis()
    attempt = 0
    try:
        while True:
            attempt += 1
            with handle.pointer.turn():
                base = handle.load()
                _require_same_table(handle, first, base)
                base.metadata.refuse_published()
                if (result := _try_on(handle, base, change, attempt)) is not None:
                    return result
            # Read only after a lost attempt, so that an alteration can correct a wrong property.
            retries = _retries(first.metadata)
            elapsed = handle.environment.now_millis() - started
            if attempt > retries.number or elapsed > retries.total_millis:
                raise _others_were_first(handle, attempt, retries)
            handle.environment.back_off(
                attempt,
                least_millis=retries.least_millis,
                longest_millis=retries.longest_millis,
            )
    except CommitConflictError as conflict:
        conflict.attempts = attempt
        raise


def _others_were_first(
    handle: TableHandle, attempts: int, retries: _Retries
) -> CommitConflictError:
    limit = "num-retries" if attempts > retries.number else "total-timeout-ms"
    return CommitConflictError(
        f"other writers of {handle.uri} published first in each of {counted(attempts, 'attempt')}; "
        "this commit was not published. Retry, or increase the table property "
        f"'commit.retry.{limit}' if many writers share the table"
    )


def _try_on(
    handle: TableHandle, base: LoadedMetadata, change: Change, attempt: int
) -> CommitResult | None:
    """Make one attempt to commit on ``base``; return None if another writer published first."""
    changed = change(base)
    if changed is None or changed is base.metadata:
        return CommitResult(base, attempt, is_published=False)
    now = handle.environment.now_millis()
    metadata = following(changed, base.metadata, base.metadata_file, now)
    published = handle.pointer.publish(base, metadata)
    if published is None:
        return None
    _log.debug("published %s after %d attempts", published.metadata_file, attempt)
    return CommitResult(published, attempt, is_published=True)


def _require_same_table(handle: TableHandle, first: LoadedMetadata, now: LoadedMetadata) -> None:
    if first.metadata.table_uuid != now.metadata.table_uuid:
        raise TableReplacedError(
            f"{handle.uri} was dropped and created again meanwhile; nothing was published. Open "
            "the new table"
        )


def _retries(metadata: TableMetadata) -> _Retries:
    def limit(key: str, default: int) -> int:
        return int_property(metadata.properties, f"commit.retry.{key}", default)

    return _Retries(
        limit("num-retries", 4),
        limit("min-wait-ms", 100),
        limit("max-wait-ms", 60_000),
        limit("total-timeout-ms", 30 * 60_000),
    )
