# SPDX-License-Identifier: Apache-2.0
"""Deletes branches or tags; their snapshots are kept until an expiry removes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import BRANCH
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import remove_reference
from lakeformat.iceberg.references.origin import find_reference
from lakeformat.tables.reference_reports import DeletionReport

__all__ = ["delete_chosen", "delete_references"]


def delete_references(
    handle: TableHandle, kind: str, names: Sequence[str], *, missing_ok: bool, dry_run: bool
) -> DeletionReport:
    """Delete branches or tags of the ``kind`` in one commit.

    Raise ``InvalidRequestError`` for ``main``, or if ``names`` is empty. Raise ``NotFoundError`` if
    a name is unknown or belongs to the other kind; with ``missing_ok``, unknown names are ignored.
    """
    if not names:
        raise InvalidRequestError(f"no {kind} is given: name at least one to delete")

    def choose(loaded: LoadedMetadata) -> list[str]:
        return _existing(loaded, kind, names, missing_ok=missing_ok)

    return delete_chosen(handle, kind, choose, none=f"no {kind} to delete", dry_run=dry_run)


def delete_chosen(
    handle: TableHandle,
    kind: str,
    choose: Callable[[LoadedMetadata], Sequence[str]],
    *,
    why: str = "",
    none: str,
    dry_run: bool,
) -> DeletionReport:
    """Delete the branches or tags that ``choose`` selects in the newest metadata.

    The report has their names. ``why`` is appended to the reason in the report. ``none`` is the
    reason if nothing is selected.
    """
    found: list[str] = []

    def change(loaded: LoadedMetadata) -> TableMetadata | None:
        found[:] = choose(loaded)
        metadata = loaded.metadata
        for name in found:
            metadata = remove_reference(metadata, name)
        return metadata if found else None

    if dry_run:
        change(handle.load())
    else:
        commit_metadata(handle, change)
    return DeletionReport(
        table=handle.uri,
        deleted=tuple(found),
        files={},
        bytes=0,
        failures=0,
        failed=(),
        dry_run=dry_run,
        reason=_reason(kind, found, why, dry_run=dry_run) if found else none,
    )


def _existing(
    loaded: LoadedMetadata, kind: str, names: Sequence[str], *, missing_ok: bool
) -> list[str]:
    found = []
    for name in dict.fromkeys(names):
        try:
            found.append(find_reference(loaded.metadata, name, kind, loaded.places.uri).name)
        except NotFoundError:
            if not missing_ok or name in loaded.metadata.references:
                raise
    return found


def _reason(kind: str, found: Sequence[str], why: str, *, dry_run: bool) -> str:
    verb = "would delete" if dry_run else "deleted"
    listed = ", ".join(repr(name) for name in found)
    if len(found) == 1:
        named, kept = kind, "it"
    else:
        named, kept = "branches" if kind == BRANCH else "tags", "they"
    rest = f"the next expiry removes the snapshots that only {kept} kept"
    return f"{verb} the {named} {listed}{why}; {rest}"
