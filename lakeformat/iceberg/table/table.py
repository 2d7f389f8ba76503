# SPDX-License-Identifier: Apache-2.0
"""The Iceberg table that users hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.branch_history import BranchHistory, BranchSnapshot, history_of
from lakeformat.iceberg.commit.directory_pointer import DirectoryPointer
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.commit.pointer import FixedPointer, MetadataPointer
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Reference
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.table.without_meaning import WITHOUT_MEANING
from lakeformat.storage import NO_ROOTS, ExternalRoots, Storage
from lakeformat.tables.position import MAIN_BRANCH, AnyPosition, Position
from lakeformat.tables.since import Since
from lakeformat.tables.table import Table

if TYPE_CHECKING:
    from datetime import timedelta

    from lakeformat.executor import Executor
    from lakeformat.iceberg.compact.plan import CompactPlan
    from lakeformat.iceberg.compact.report import CompactReport
    from lakeformat.iceberg.expire.expire_report import IcebergExpireReport
    from lakeformat.iceberg.health import IcebergHealthReport
    from lakeformat.iceberg.read.scan import Scan
    from lakeformat.iceberg.references.table_branches import TableBranches
    from lakeformat.iceberg.references.table_tags import TableTags
    from lakeformat.iceberg.table.change_stream import ChangeStream
    from lakeformat.iceberg.table.consumers import TableConsumers
    from lakeformat.iceberg.table.system_table import IcebergSystemTable
    from lakeformat.iceberg.write.report import WriteReport
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.arguments import Overwritten, Partitions, PartitionSpec, WindowEnd
    from lakeformat.tables.checks import Columns
    from lakeformat.tables.commit_id import CommitId
    from lakeformat.tables.compact_progress import OnUnit
    from lakeformat.tables.deleter import OnRemoval
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.orphan_report import OrphanReport
    from lakeformat.tables.past_time import PastTime
    from lakeformat.tables.reference_reports import RollbackReport
    from lakeformat.tables.results import Rows
    from lakeformat.tables.row_checks.check_report import CheckReport

__all__ = ["IcebergTable", "load_iceberg_table"]


def _call(procedure: str) -> str:
    return f"this version does not maintain Iceberg tables; run CALL system.{procedure} in Spark"


_ROWS = "this version changes no single rows of Iceberg tables; use Spark, Flink or PyIceberg"
_INSTEAD = {
    "analyze": _call("compute_table_stats"),
    "commit": "write(rows, commit=...) writes and publishes in one call",
    "expire_partitions": "drop_partitions([...]) deletes the partitions that you name",
    "maintain": "call compact(), and then expire_snapshots() and remove_orphans()",
    "update": _ROWS,
}


def load_iceberg_table(
    storage: Storage,
    root: str,
    external_roots: ExternalRoots = NO_ROOTS,
    branch: str = MAIN_BRANCH,
    metadata_file: str | None = None,
    environment: Environment = SYSTEM,
) -> IcebergTable:
    """Load the table in a directory, with its newest metadata file or with a given one.

    Raise ``NotFoundError`` if it has no such branch.
    """
    pointer: MetadataPointer = DirectoryPointer(storage, root, external_roots, environment)
    if metadata_file is not None:
        pointer = FixedPointer(storage, root, external_roots, metadata_file)
    table = IcebergTable(TableHandle(pointer, branch, environment))
    table.snapshots()
    return table


class IcebergTable(Table):
    """One branch of a table in Iceberg's format; every call sees the newest metadata file."""

    format = "iceberg"
    numbers_snapshots = False
    instead = MappingProxyType(_INSTEAD | {**WITHOUT_MEANING})

    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle

    def __repr__(self) -> str:
        return f"<IcebergTable {self.location}>"

    @property
    def location(self) -> str:
        """The URI of the table."""
        return self._handle.uri

    @property
    def schema(self) -> Schema:
        """The current columns."""
        return self._loaded().metadata.schema

    @property
    def format_version(self) -> int:
        """The version of the format: 1, 2 or 3."""
        return self._loaded().metadata.format_version

    @property
    def partition_by(self) -> list[str]:
        """The columns, or transforms such as ``day(event_time)``, that partition new files."""
        metadata, found = self._loaded().metadata, []
        for field in metadata.spec_of(metadata.default_spec_id).fields:
            column = metadata.schema.name_of(field.source_id) or str(field.source_id)
            found.append(
                column if field.transform == "identity" else f"{field.transform}({column})"
            )
        return found

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties that are set on the table."""
        return self._loaded().metadata.properties

    @property
    def references(self) -> Mapping[str, Reference]:
        """The branches and tags by name."""
        return self._loaded().metadata.references

    def snapshots(self, *, after: AnyPosition | None = None) -> list[BranchSnapshot]:
        """Return the kept snapshots of the branch, oldest first, or those after a position."""
        history = self._history()
        return [*history.snapshots] if after is None else history.between(after, None)

    def latest_snapshot(self, known: BranchSnapshot | None = None) -> BranchSnapshot | None:
        """Return the newest snapshot of the branch; None before the first commit.

        If ``known`` is still the newest, it is returned. Metadata that is known is not read again.
        """
        found = self.snapshots()
        newest = found[-1] if found else None
        return known if newest == known else newest

    def position(self, named: Any = None) -> Position:
        """Return the newest position of the branch, or convert a stored position.

        An int is the id of a snapshot of the branch, or else a sequence number.
        """
        history = self._history()
        if named is None:
            return history.head
        given = Position.parse(named)
        if isinstance(named, int):
            for each in history.snapshots:
                if each.snapshot_id == named:
                    return each.position
        return Position(
            (history.number(given),), self._handle.branch, given.identity, self.location
        )

    def snapshot_id_at(self, position: Position) -> int:
        """Return the id of the snapshot at a position of the branch; 0 at the beginning.

        A position without a snapshot of its own is that of the newest snapshot before it.
        """
        if position.identity is not None:
            return int(position.identity)
        upto = self._history().numbered(position)
        return upto[-1].snapshot_id if upto else 0

    def positions(
        self, *, after: AnyPosition | None = None, upto: AnyPosition | None = None, limit: int
    ) -> list[Position]:
        """Return the newest positions after one and up to another, oldest first."""
        history = self._history()
        found = history.numbered(upto) if after is None else history.between(after, upto)
        return [each.position for each in found[-limit:]] if limit > 0 else []

    def advance(self, after: AnyPosition, limit: int | None = None) -> Position:
        """Return the newest position, at most ``limit`` snapshots after another."""
        history = self._history()
        if limit is None:
            return history.head
        newer = history.between(after, None)[:limit]
        return newer[-1].position if newer else min(history.head, self.position(after))

    def since(self, after: AnyPosition, upto: AnyPosition | None = None) -> Since[BranchSnapshot]:
        """Return the snapshots after a position, oldest first, up to another or to the newest.

        The result shows if some have expired unseen, and if a rollback removed the history of
        ``after``.
        """
        return self._history().since(after, upto)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        *,
        where: Where | None = None,
        partitions: Partitions | None = None,
        snapshot: AnyPosition | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        watermark: int | None = None,
        newest: bool = False,
        limit: int | None = None,
    ) -> Scan:
        """Scan the rows of the newest snapshot of the branch, or of one chosen by id, tag or time.

        ``where`` is a SQL condition or one made with ``lake.col``; it skips files of every
        partition spec. ``partitions`` chooses some by the values of columns that are partitions
        themselves, ``{"dt": "2024-01-01"}`` or a list of such. ``snapshot`` is a snapshot id or a
        position. A chosen snapshot is read with the columns the table had then. ``newest`` changes
        nothing, because no option of an Iceberg table chooses a snapshot. ``watermark`` is refused.
        """
        from lakeformat.iceberg.choice import choose
        from lakeformat.iceberg.read.scan import Scan
        from lakeformat.iceberg.read.time_travel import find_state
        from lakeformat.iceberg.read.where import row_filter
        from lakeformat.tables.scan_arguments import check_limit

        if watermark is not None:
            raise UnsupportedError(
                f"{self.location} is an Iceberg table, which has no watermarks: use as_of"
            )
        loaded = self._loaded()
        chosen = choose(loaded, self._history(), snapshot=snapshot, tag=tag, as_of=as_of)
        state = find_state(loaded.places, loaded.metadata, **chosen)
        asked = row_filter(loaded.metadata, state.schema, where, partitions)
        return Scan(state, columns, asked, check_limit(limit))

    def changes(
        self,
        after: WindowEnd,
        upto: WindowEnd | None = None,
        mode: str = "auto",
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        partitions: Partitions | None = None,
        keys: Sequence[str] | None = None,
    ) -> Rows:
        """Return the changes after one snapshot up to and including another, by default the newest.

        Both ends are positions, snapshot ids, names of tags or branches, or datetimes; ``after=0``
        is before the first. A window whose ends are the same has no rows.

        The first column, ``rowkind``, is the kind of each row: ``+I`` inserted, ``-D`` deleted,
        ``-U`` and ``+U`` before and after an update; ``where`` may use it, too. ``keys`` are the
        columns that identify a row, by default the identifier fields of the schema; without any, an
        update is ``-D`` and ``+I``. ``mode="changelog"`` returns the changes commit by commit,
        ``"diff"`` the difference of both states, ``"appends"`` only the rows of commits that do not
        delete or overwrite rows. ``"auto"`` compares two tags and otherwise reads the changelog.
        Rows are read with the current columns of the table.
        """
        from lakeformat.iceberg.table.window_changes import window_changes

        return window_changes(
            self._loaded(),
            self._history(),
            after,
            upto,
            mode,
            columns=columns,
            where=where,
            partitions=partitions,
            keys=keys,
        )

    def stream(
        self,
        mode: str = "latest-full",
        *,
        snapshot: AnyPosition | None = None,
        as_of: Moment | None = None,
        consumer: str | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        partitions: Partitions | None = None,
        keys: Sequence[str] | None = None,
    ) -> ChangeStream:
        """Stream changes, one commit after another; the stream never waits for the next.

        ``mode`` chooses the start: all rows and then the changes (``latest-full``,
        ``compacted-full``, ``from-snapshot-full``), or changes alone (``latest``, ``from-snapshot``
        with ``snapshot=``, ``from-timestamp`` with ``as_of=``). With a ``consumer`` the stream
        resumes after the last acknowledged commit. The rows are those of ``changes``.
        """
        from lakeformat.iceberg.choice import snapshot_id_of
        from lakeformat.iceberg.read.asked_rows import asked_rows
        from lakeformat.iceberg.table.change_stream import ChangeStream
        from lakeformat.tables.stream import StreamStart

        loaded = self._loaded()
        asked = asked_rows(
            loaded.metadata, columns=columns, where=where, partitions=partitions, keys=keys
        )
        if snapshot is not None:
            snapshot = snapshot_id_of(loaded, self._history(), snapshot)
        return ChangeStream(self._handle, StreamStart(mode, snapshot, as_of), asked, consumer)

    @property
    def consumers(self) -> TableConsumers:
        """The consumers: readers of changes that keep their position in the table's directory."""
        from lakeformat.iceberg.table.consumers import TableConsumers

        return TableConsumers(self._handle)

    def check(
        self,
        *,
        staged: Sequence[str] | None = None,
        replaces: int | None = None,
        where: Where | None = None,
        min_rows: int | None = None,
        max_rows: int | None = None,
        not_null: Sequence[str] = (),
        unique: Sequence[Columns] = (),
        accepted_values: Mapping[str, Sequence[Any]] = MappingProxyType({}),
        freshness: Mapping[str, str | timedelta] = MappingProxyType({}),
        conditions: Sequence[str] = (),
        warn_only: Sequence[str] = (),
        executor: Executor | None = None,
    ) -> CheckReport:
        """Check the rows of the newest snapshot of the branch, or those that meet ``where``.

        The checks are those of Paimon tables: see ``Table.check``. ``staged`` and ``replaces`` are
        refused, because an Iceberg table has no staged results.
        """
        from lakeformat.iceberg.choice import choose
        from lakeformat.iceberg.read.checked_rows import check_rows
        from lakeformat.iceberg.read.time_travel import find_state
        from lakeformat.tables.checks import Checks

        if staged is not None or replaces is not None:
            raise UnsupportedError(
                f"{self.location} is an Iceberg table, which has no staged results: leave out "
                "'staged' and 'replaces' to check the published rows"
            )
        checks = Checks(
            min_rows=min_rows,
            max_rows=max_rows,
            not_null=not_null,
            unique=unique,
            accepted_values=accepted_values,
            freshness=freshness,
            conditions=conditions,
            warn_only=warn_only,
        )
        loaded, now = self._loaded(), self._handle.environment.now_millis()
        state = find_state(loaded.places, loaded.metadata, **choose(loaded, self._history()))
        return check_rows(state, checks, now, where=where, executor=executor)

    def health(self, *, time_travel: bool = True, unknown: bool = False) -> IcebergHealthReport:
        """Return facts, a score, and reasons with advice, at the newest snapshot of the branch.

        Only metadata is read. ``time_travel`` also reads the manifests of older snapshots, to sum
        up the files that only they need, and counts the metadata files. ``unknown`` is refused.
        """
        from lakeformat.iceberg.health import check_health
        from lakeformat.iceberg.health.reasons import Cures

        if unknown:
            raise UnsupportedError(
                f"unknown=True does not work on {self.location}, an Iceberg table: to list files "
                "that nothing refers to, call remove_orphans(dry_run=True)"
            )
        newest = self.latest_snapshot()
        return check_health(
            self._loaded(),
            None if newest is None else newest.snapshot,
            Cures(self.location, self.operations),
            self._handle.environment.now_millis(),
            time_travel=time_travel,
        )

    def system_table(self, name: str) -> IcebergSystemTable:
        """Return a system table: metadata as rows, such as ``"files"``."""
        from lakeformat.iceberg.system_tables.registry import find_system_table
        from lakeformat.iceberg.table.system_table import IcebergSystemTable

        return IcebergSystemTable(find_system_table(name), self._loaded, self._handle.branch)

    @property
    def system_tables(self) -> list[str]:
        """The names of the system tables."""
        from lakeformat.iceberg.system_tables.registry import SYSTEM_TABLES

        return [*SYSTEM_TABLES]

    @property
    def tags(self) -> TableTags:
        """The tags of the table."""
        from lakeformat.iceberg.references.table_tags import TableTags

        return TableTags(self._handle)

    @property
    def branches(self) -> TableBranches:
        """The branches of the table, without main."""
        from lakeformat.iceberg.references.table_branches import TableBranches

        return TableBranches(self._handle)

    def rollback(
        self,
        *,
        snapshot: AnyPosition | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        watermark: int | None = None,
        as_latest: bool = True,
        force: bool = False,
        commit: CommitId | None = None,
        dry_run: bool = False,
    ) -> RollbackReport:
        """Move the branch back to a snapshot of its history: by id, by tag, or the last at a time.

        Nothing is deleted: newer snapshots are kept until they expire. With ``commit`` and its
        ``first_try_millis`` a repeated rollback of main finds the first one and does nothing, so
        rows committed since are kept. ``watermark``, ``as_latest=False`` and ``force`` are refused.
        """
        from lakeformat.iceberg.rollback import refuse_foreign_arguments, rollback

        refuse_foreign_arguments(watermark=watermark, as_latest=as_latest, force=force)
        return rollback(
            self._handle, snapshot=snapshot, tag=tag, as_of=as_of, commit=commit, dry_run=dry_run
        )

    def write(
        self,
        data: Any,
        kinds: Any = None,
        *,
        overwrite: Overwritten | None = None,
        commit: CommitId | None = None,
        properties: Mapping[str, str] | None = None,
        **options: Any,
    ) -> WriteReport:
        """Add rows in one commit, or replace partitions; the same ``commit`` publishes only once.

        ``data`` is a pyarrow, pandas or polars object, or an iterable of those; missing columns get
        their default or nulls. ``properties`` are added to the summary of the snapshot. If
        ``commit`` was published before, nothing is written and the rows are not compared.

        ``overwrite="table"`` replaces all rows, ``{"dt": "2024-01-01"}`` those of some partitions
        and ``"partitions"`` those of the partitions that get rows. Only whole files are removed.

        If this raises a ``LakeError``, nothing was published and no file is left behind. The
        exception is ``CommitOutcomeUnknownError``: then repeat the call with the same ``commit``.
        """
        from lakeformat.iceberg.write.append import append
        from lakeformat.iceberg.write.options import refuse_options

        refuse_options(self.location, {"kinds": kinds, **options})
        if overwrite is None:
            return append(self._handle, data, commit=commit, properties=properties)
        from lakeformat.iceberg.write.overwrite import overwrite as replace_rows

        return replace_rows(self._handle, data, overwrite, commit=commit, properties=properties)

    def delete(self, where: Where, *, commit: CommitId | None = None) -> WriteReport:
        """Delete the rows that meet a condition, in one commit, if they fill whole files.

        Partitions and bounds of the files decide, and no row is read. If some rows of a file may
        meet the condition and other ones not, ``UnsupportedError`` is raised and nothing changes.
        """
        from lakeformat.iceberg.write.overwrite import delete_where

        return delete_where(self._handle, where, commit=commit)

    def truncate(self, *, commit: CommitId | None = None) -> WriteReport:
        """Delete all rows of the branch; earlier snapshots keep them until they expire."""
        from lakeformat.iceberg.write.overwrite import delete_partitions

        return delete_partitions(self._handle, None, commit=commit)

    def drop_partitions(
        self, partitions: Iterable[PartitionSpec], *, commit: CommitId | None = None
    ) -> WriteReport:
        """Delete the rows of partitions, each named by the values of some partition columns.

        Only whole files are removed, so the columns must be partitions of every file themselves.
        """
        from lakeformat.iceberg.write.overwrite import delete_partitions
        from lakeformat.tables.arguments import partitions_to_drop

        return delete_partitions(self._handle, partitions_to_drop(partitions), commit=commit)

    def expire_snapshots(
        self,
        *,
        older_than: PastTime | None = None,
        retain_min: int | None = None,
        snapshots: Collection[int] = (),
        clean_metadata: bool = False,
        delete_files: bool = True,
        dry_run: bool = False,
        on_progress: OnRemoval | None = None,
        retain_max: int | None = None,
        limit: int | None = None,
    ) -> IcebergExpireReport:
        """Remove old snapshots with the files that only they need, by the rules of Java.

        Each branch keeps its ``retain_min`` newest snapshots, and those made since ``older_than``:
        a time, or an age such as ``"2 d"``. By default the table's properties decide, and limits of
        a branch or tag come first. Commits that a consumer has not read are kept. ``snapshots`` are
        ids that expire as well. ``clean_metadata`` also removes schemas and partition specs that no
        kept snapshot uses. Without ``delete_files`` no file is deleted.

        Nothing outside of the table is deleted but what an allowed directory has. A ``dry_run``
        deletes nothing, and its report has each file with the reason, unless ``on_progress`` is
        called with each. ``retain_max`` and ``limit`` are refused.
        """
        from lakeformat.iceberg.expire.expire import ExpiryRequest, expire_snapshots
        from lakeformat.iceberg.table.consumers import unread_snapshots

        if retain_max is not None or limit is not None:
            raise UnsupportedError(
                "an expiry of an Iceberg table has neither retain_max nor limit: pass older_than "
                "and retain_min"
            )
        request = ExpiryRequest(
            older_than,
            retain_min,
            snapshots,
            clean_metadata,
            delete_files,
            lambda: unread_snapshots(self._handle),
        )
        return expire_snapshots(self._handle, request, dry_run=dry_run, on_progress=on_progress)

    def plan_compaction(
        self,
        *,
        where: Where | None = None,
        partitions: Partitions | None = None,
        **options: Any,
    ) -> CompactPlan:
        """Plan ``compact`` group by group with reasons; no data file is read."""
        from lakeformat.iceberg.compact.plan import plan_compaction
        from lakeformat.iceberg.compact.settings import wanted_files

        return plan_compaction(self._handle, wanted_files(where, partitions, options))

    def compact(
        self,
        *,
        where: Where | None = None,
        partitions: Partitions | None = None,
        commit: CommitId | None = None,
        executor: str | Executor | None = None,
        on_progress: OnUnit | None = None,
        **options: Any,
    ) -> CompactReport:
        """Merge files into fewer and larger ones, without deleted rows; the rows do not change.

        ``where`` and ``partitions`` choose the files that may hold such rows; whole files are
        rewritten with the current columns and partitions, and are not sorted. ``strategy`` is
        ``"minor"``, what is due by the rules of Java's ``rewrite_data_files``, also named
        ``"binpack"``, or ``"full"``: every two small files, and all deletes.

        The options are those of Java: ``target_file_bytes`` (by default the property
        ``write.target-file-size-bytes``), ``min_file_bytes`` and ``max_file_bytes`` (75% and 180%
        of it), ``max_group_bytes`` (100 GiB), ``min_input_files`` (5), ``delete_file_threshold``
        (no limit), ``delete_ratio_threshold`` (0.3) and ``rewrite_all`` (False).

        Writers are not blocked, and appends are no conflict. If rows of rewritten files are deleted
        meanwhile, everything is planned again. The same ``commit`` publishes once. ``executor`` is
        ``"threads"``, ``"serial"``, or an object such as ``spark_jobs.SparkExecutor``;
        ``on_progress`` is called after each group.
        """
        from lakeformat.iceberg.compact.compact import compact
        from lakeformat.iceberg.compact.settings import wanted_files

        wanted = wanted_files(where, partitions, options)
        return compact(
            self._handle, wanted, commit=commit, executor=executor, on_progress=on_progress
        )

    def other_compactor(self) -> None:
        """Return None: two compactions of a table may meet, because the second plans again."""

    def explain_empty_choice(
        self, *, where: Where | None = None, partitions: Partitions | None = None
    ) -> str | None:
        """Return a text if no data file may hold chosen rows; else None."""
        from lakeformat.iceberg.compact.plan import explain_empty_choice

        return explain_empty_choice(self._handle, where, partitions)

    def remove_orphans(
        self,
        older_than: PastTime | None = None,
        dry_run: bool = True,
        *,
        running_since: Moment | None = None,
        allow_younger: bool = False,
        max_share: float = 0.5,
        on_progress: OnRemoval | None = None,
        external_paths: bool = False,
        executor: str | Executor | None = None,
    ) -> OrphanReport:
        """Remove orphan files: no metadata file that is current or in the log reaches them.

        Dry run by default. Only files below the table's directory are removed, last changed before
        ``older_than``: a time, or an age such as ``"2 d"``; by default three days ago. Writes in
        progress have unreferenced files, so a time within one day, or after ``running_since``, the
        start of the oldest such write, is refused unless ``allow_younger`` confirms that no writer
        is active. Names that begin with ``_`` or ``.`` are kept. Removing more than ``max_share``
        of the table's files or bytes is refused. ``on_progress`` is called with every file.
        ``external_paths`` is refused, and so is an ``executor`` other than a thread of this
        process.
        """
        from lakeformat.iceberg.orphans.remove import OrphanOptions, remove_orphans

        if external_paths or executor not in (None, "threads", "serial"):
            raise UnsupportedError(
                "a removal of orphans of an Iceberg table searches only its directory, in this "
                "process: leave out external_paths, executor and the engine 'spark'"
            )
        options = OrphanOptions(
            older_than=older_than,
            running_since=running_since,
            allow_younger=allow_younger,
            max_share=max_share,
        )
        return remove_orphans(self._handle, options, dry_run=dry_run, on_progress=on_progress)

    def _loaded(self) -> LoadedMetadata:
        return self._handle.load()

    def _history(self) -> BranchHistory:
        return history_of(self._loaded().metadata, self._handle.branch, self.location)
