# SPDX-License-Identifier: Apache-2.0
"""Copies a table to another name, warehouse or storage, file by file and byte by byte.

The schemas are copied last, the newest one first. Without schemas the copy is not a table, so
readers never see an incomplete table. A mark file names the source until the clone is complete, so
that a repeated call resumes an interrupted clone.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from lakeformat.catalog.base import Catalog
from lakeformat.catalog.leftovers import has_leftovers, refuse_another_kind
from lakeformat.catalog.transfer.contents import Contents, contents_of_snapshot, contents_of_table
from lakeformat.catalog.transfer.transfer_reports import CloneReport, drop_advice
from lakeformat.deprecation import renamed_argument
from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptTableError,
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.paimon.branches.observed import observe_all
from lakeformat.paimon.deletion.parallel import in_parallel
from lakeformat.paimon.handle import TableHandle, read_through
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout, numbered
from lakeformat.paimon.metadata.schema_file import schema_ids
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot,
    snapshot_ids,
    write_hints,
)
from lakeformat.paimon.read.time_travel import find_snapshot
from lakeformat.paimon.table import ReadOnlyTable, Table
from lakeformat.storage import Storage
from lakeformat.storage.digest import content_digest
from lakeformat.tables.clone_mark import shown_mark
from lakeformat.tables.table import Table as AnyTable
from lakeformat.tables.table import offering_arguments
from lakeformat.types.count_text import counted
from lakeformat.types.sentence import sentence
from lakeformat.types.type_rules import holds_blobs

if TYPE_CHECKING:
    from lakeformat.catalog.iceberg import IcebergCatalog
    from lakeformat.mixed.table import MixedTable
    from lakeformat.tables.position import AnyPosition

__all__ = ["CLONE_MARK", "OnFiles", "clone_table"]

_log = logging.getLogger(__name__)
_CHUNK = 8 << 20
_EVERYTHING = "everything"
_NAMES = ("snapshot", "tag", "changelog", "branch")
"""Directories that a resumed clone deletes and copies again: the source may have changed."""

CLONE_MARK = ".cloning"
"""A file in the directory of a clone that names the source until the clone is complete."""

OnFiles: TypeAlias = Callable[[int, int], None]
"""A function to call after each file, with the number of all files and the number of files that are
done.
"""


@renamed_argument("tell", "on_progress")
@offering_arguments
def clone_table(
    source: Table | MixedTable,
    catalog: Catalog | IcebergCatalog,
    name: str,
    *,
    snapshot: AnyPosition | str | None = None,
    tag: str | None = None,
    full: bool = False,
    dry_run: bool = False,
    on_progress: OnFiles | None = None,
) -> CloneReport:
    """Copy a table into a catalog as ``database.table``: one snapshot, or with ``full`` everything.

    ``snapshot`` (a snapshot id) or ``tag`` chooses the snapshot, with its columns and options;
    default: the newest snapshot. ``full`` copies all snapshots, tags, branches and changelogs of
    the table, even if ``source`` is a branch. The progress of consumers is not copied. The source
    is only read. If another table has the name, ``AlreadyExistsError`` is raised.

    Of a Mixed table, the merged rows of one state become a new Mixed table in a catalog of Iceberg
    tables; ``snapshot`` is a position, as ``source.position()`` returns it, or a snapshot id of
    either store.

    To complete an interrupted clone, repeat the call. For a Paimon table, data files that are
    already copied completely are not copied again. If the source's snapshots may expire during the
    copy, create a tag and clone the tag. ``dry_run`` only counts the files.
    """
    if not isinstance(source, Table):
        return _clone_mixed(
            source, catalog, name, snapshot, tag, full, dry_run=dry_run, on_progress=on_progress
        )
    if not isinstance(catalog, Catalog):
        raise InvalidRequestError(
            f"{catalog.location} is a catalog of Iceberg tables, but the source is a Paimon table: "
            "open the target with format='paimon'"
        )
    if snapshot is not None and type(snapshot) is not int:
        raise InvalidRequestError(
            f"snapshot must be an int, the id of a snapshot of {source.location}, got "
            f"{snapshot!r}: snapshots() lists them"
        )
    if isinstance(source, ReadOnlyTable):
        raise InvalidRequestError(
            "cannot clone a system table: pass the table itself, opened without '$…'"
        )
    if full and (snapshot is not None or tag is not None):
        raise InvalidRequestError(
            "full=True copies every snapshot and tag: leave out snapshot= and tag=, or full=True"
        )
    handle = source._handle
    _require_blobs_named(handle)
    if not full:
        _require_own_rows(handle)
    storage, layout = catalog.place_of_new_table(name)
    wanted = find_snapshot(handle, snapshot=snapshot, tag=tag)
    asked = f"tag {tag}" if tag is not None else f"snapshot {snapshot}"
    asked = _EVERYTHING if full else asked if wanted is not None else "the newest snapshot"
    run = _Clone(handle, catalog, name, storage, layout, asked, on_progress)
    if not dry_run and (done := run.finished()) is not None:
        return done
    run.check(dry_run=dry_run)
    head = wanted or latest_snapshot(handle.storage, handle.layout)
    run.contents = _contents(handle, head, full=full, all_schemas=wanted is None)
    if not dry_run:
        run.copy()
    report = run.report(head, full=full, dry_run=dry_run)
    _log.info("clone of %s to %s: %s", report.source, report.target, report.reason)
    return report


def _clone_mixed(
    source: MixedTable,
    catalog: Catalog | IcebergCatalog,
    name: str,
    snapshot: AnyPosition | str | None,
    tag: str | None,
    full: bool,
    *,
    dry_run: bool,
    on_progress: OnFiles | None,
) -> CloneReport:
    if not isinstance(source, AnyTable):
        raise InvalidRequestError(
            f"source must be an open table, got {source!r}: open it with catalog.table(name)"
        )
    if source.cloned_into is None:
        raise UnsupportedError(
            f"{source.location} is {source.kind}, which clone_table does not copy: create another "
            "table, and write the rows of scan() to it"
        )
    if tag is not None or full:
        raise UnsupportedError(
            f"{source.location} is a Mixed table: it has no tags, and its clone has one state. "
            "Leave out 'tag' and 'full'. To clone an earlier state, pass a position or a "
            "snapshot id of the source as 'snapshot'"
        )
    if isinstance(catalog, Catalog):
        raise InvalidRequestError(
            f"{catalog.location} is a catalog of Paimon tables, but the source is a Mixed table: "
            "open the target with format='iceberg'"
        )
    from lakeformat.catalog.transfer.clone_pair import clone_pair  # Paimon tables do not need it

    return clone_pair(
        source, catalog, name, snapshot=snapshot, dry_run=dry_run, on_progress=on_progress
    )


def _require_blobs_named(handle: TableHandle) -> None:
    """Raise ``UnsupportedError`` for a table with a primary key and blobs.

    No manifest names the files of these blobs, so a clone would still use the files of the source.
    """
    schema = handle.schema
    blobs = [field.name for field in schema.fields if holds_blobs(field.type)]
    if blobs and schema.primary_keys:
        raise UnsupportedError(
            f"cannot clone {handle.uri}: no manifest names the files with the blobs of column "
            f"{blobs[0]!r}, so the clone would use these files of the source. Copy the rows with "
            "another engine"
        )


def _require_own_rows(handle: TableHandle) -> None:
    if (key := read_through(handle.options.to_dict(), handle.layout.branch)) is not None:
        raise UnsupportedError(
            f"{handle.uri} sets {key!r} and so also reads rows of other branches, but a clone of "
            "one snapshot has only rows of one branch: clone the table with full=True (--full), "
            "which copies all branches"
        )


def _contents(
    handle: TableHandle, head: Snapshot | None, *, full: bool, all_schemas: bool
) -> Contents:
    try:
        if full:
            return contents_of_table(handle)
        return contents_of_snapshot(handle, head, all_schemas=all_schemas)
    except (CorruptTableError, NotFoundError) as reason:
        raise _expired(handle, reason) from reason


def _expired(handle: TableHandle, reason: Exception) -> Exception:
    return type(reason)(
        f"{sentence(reason)} Perhaps a snapshot of {handle.uri} expired while it was copied: "
        "create a tag and clone the tag, or run the clone again"
    )


@dataclass(slots=True)
class _Clone:
    handle: TableHandle
    catalog: Catalog
    name: str
    storage: Storage
    layout: TableLayout
    asked: str
    on_progress: OnFiles | None
    contents: Contents = field(default_factory=Contents)
    copied: int = 0
    _done: int = 0
    _resumed: bool = False

    @property
    def _mark(self) -> str:
        return f"{self.layout.root}/{CLONE_MARK}"

    @property
    def _mark_content(self) -> bytes:
        branch = self.handle.layout.branch
        said = {"source": self.handle.uri, "branch": branch, "what": self.asked}
        return json.dumps(said, indent=2).encode()

    def finished(self) -> CloneReport | None:
        """Complete a clone whose earlier attempt already copied a schema, and return the report.

        Return None if the target has no schema yet, or no mark of an unfinished clone. The mark of
        another clone raises ``AlreadyExistsError``.
        """
        listed = self.storage.list(self.layout.schema_directory)
        found = (numbered(info.name, "schema-") for info in listed)
        there = sorted(number for number in found if number is not None)
        if not there or not self._is_ours():
            return None
        # Other programs may already use the table, so only older schemas are added.
        source = self.handle.layout
        for number in schema_ids(self.handle.storage, source):
            if number < there[-1] and number not in there:
                content = self.handle.storage.read(source.schema(number))
                self._create(self.layout.schema(number), content)
        self._finish()
        head = latest_snapshot(self.storage, self.layout)
        report = self.report(head, full=self.asked == _EVERYTHING, dry_run=False)
        return replace(
            report,
            snapshot_ids=tuple(snapshot_ids(self.storage, self.layout)),
            reason="an earlier attempt had copied all files; the clone is complete now",
        )

    def check(self, *, dry_run: bool) -> None:
        """Raise ``AlreadyExistsError`` if the target has a table, files of a dropped table, or
        files of another clone.

        Files of an earlier attempt of the same clone are accepted.
        """
        if self._is_ours():
            return
        self.catalog.prepare_clone(self.name, dry_run=dry_run)
        uri = self.storage.uri(self.layout.root)
        if schema_ids(self.storage, self.layout):
            raise AlreadyExistsError(
                f"table '{self.name}' exists in {self.catalog.location}: choose another name for "
                "the clone, or, if you need none of the table's rows, drop the table first"
            )
        refuse_another_kind(self.storage, self.layout, str(self.name))
        if has_leftovers(self.storage, self.layout):
            raise AlreadyExistsError(
                f"{uri} holds files of a former table, whose schema is missing: delete them with "
                f"{self._drop}, or choose another name"
            )

    def copy(self) -> None:
        """Copy all files, the schemas last: with them the copy becomes a table.

        If another clone is writing the same table, raise ``AlreadyExistsError``.
        """
        self._resumed = self._is_ours()
        if self._resumed:
            for directory in _NAMES:  # files that an earlier plan copied
                self.storage.delete_directory(f"{self.layout.root}/{directory}")
        else:
            self.storage.make_directory(self.layout.root)
            if not self.storage.create(self._mark, self._mark_content):
                raise AlreadyExistsError(
                    f"another clone is writing '{self.name}': wait for it, or choose another name"
                )
        in_parallel(self.handle, self._copy_file, self.contents.files)
        for path, content in self.contents.names.items():
            self._create(f"{self.layout.root}/{path}", content)
        for branch, ids in self.contents.snapshot_ids.items():
            if ids:
                write_hints(self.storage, self.layout.on_branch(branch), ids[-1])
        for number in sorted(self.contents.schemas, reverse=True):
            self._create(self.layout.schema(number), self.contents.schemas[number])
        self._finish()

    def report(self, head: Snapshot | None, *, full: bool, dry_run: bool) -> CloneReport:
        """Return the report; ``head`` is the clone's newest snapshot, None for an empty table."""
        contents = self.contents
        what = f"snapshot {head.id}" if head is not None else "the schema of an empty table"
        would = "would be copied" if dry_run else f"complete, {self.copied} copied now"
        return CloneReport(
            source=self.handle.uri,
            target=self.storage.uri(self.layout.root),
            what=_EVERYTHING if full else what,
            dry_run=dry_run,
            files=len(contents.files),
            copied=self.copied,
            bytes=contents.bytes,
            snapshot_ids=tuple(contents.snapshot_ids.get(MAIN_BRANCH, ())),
            reason=f"{counted(len(contents.files), 'file')} {would}",
        )

    @property
    def _drop(self) -> str:
        return drop_advice(self.catalog.location, self.name)

    def _is_ours(self) -> bool:
        """Return True if the target has the mark of this clone, False if it has no mark.

        The mark of another clone raises ``AlreadyExistsError``.
        """
        try:
            content = self.storage.read(self._mark)
        except NotFoundError:
            return False
        if content == self._mark_content:
            return True
        raise AlreadyExistsError(
            f"{self.storage.uri(self.layout.root)} holds another clone, running or interrupted"
            f"{shown_mark(content)}. Repeat that clone, or delete its files with {self._drop}"
        )

    def _copy_file(self, path: str) -> None:
        target = f"{self.layout.root}/{path}"
        is_there = self._resumed and self.storage.exists(target)
        if is_there and not self._is_same(path, target):  # an interrupted attempt wrote only a part
            self.storage.delete(target)
            is_there = False
        if not is_there:
            self._write(path, target)
        self._done += 1
        if self.on_progress is not None:
            self.on_progress(len(self.contents.files), self._done)

    def _write(self, path: str, target: str) -> None:
        source = f"{self.handle.layout.root}/{path}"
        try:
            stream = self.handle.storage.open_input(source)
        except NotFoundError as reason:
            raise _expired(self.handle, reason) from reason
        with stream, self.storage.open_output(target) as sink:
            shutil.copyfileobj(stream, sink, _CHUNK)
        self.copied += 1

    def _is_same(self, path: str, target: str) -> bool:
        source = f"{self.handle.layout.root}/{path}"
        return content_digest(self.handle.storage, source) == content_digest(self.storage, target)

    def _create(self, path: str, content: bytes) -> None:
        self.storage.make_directory(path.rpartition("/")[0])
        if not self.storage.create(path, content) and self.storage.read(path) != content:
            raise CommitConflictError(
                f"another program wrote {self.storage.uri(path)} while '{self.name}' was cloned; "
                "that file was not overwritten. Choose another name, or drop the table and repeat"
            )

    def _finish(self) -> None:
        """Add the table to the catalog's list, delete the mark file, and publish the table if its
        options ask for it.
        """
        self.catalog.repair(self.name)
        self.storage.delete(self._mark)
        observe_all(self.catalog.table(self.name)._handle)
