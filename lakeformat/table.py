"""The table a user holds: thin, every method hands over to the package that does the work."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NoReturn, TypeAlias

from lakeformat.commit.abort import abort_messages
from lakeformat.commit.admission import admit
from lakeformat.commit.checks import check_messages, is_whole_number, known_rows
from lakeformat.commit.commit import (
    DYNAMIC,
    CommitOptions,
    Dynamic,
    commit_messages,
    earlier_tries,
    find_commit,
    find_replay,
)
from lakeformat.commit.identity import CommitId
from lakeformat.commit.report import CommitReport
from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import (
    CommitOutcomeUnknownError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.handle import TableHandle
from lakeformat.layout import MAIN_BRANCH, TableLayout
from lakeformat.metadata.branch_directory import check_branch_name, require_branch
from lakeformat.metadata.commit_message import CommitMessage
from lakeformat.metadata.schema_file import latest_schema_id, read_schema
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.metadata.snapshot_directory import (
    latest_snapshot,
    latest_snapshot_id,
    read_snapshot,
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.metadata.tag import read_tag
from lakeformat.options import TableOptions
from lakeformat.partition_filter import PartitionFilter, PartitionSpec, some_partitions
from lakeformat.read.scan import Scan
from lakeformat.schema import TableSchema
from lakeformat.storage import Storage, open_storage
from lakeformat.system_tables import (
    Source,
    SystemScan,
    SystemTableDeclaration,
    find_system_table,
)
from lakeformat.write.append_writer import AppendWriter

__all__ = ["Overwritten", "SystemTable", "Table", "load_table", "open_table"]

Overwritten: TypeAlias = PartitionSpec | Literal["dynamic"]
"""What rows are put in place of: ``{}`` is the whole table."""


def open_table(
    location: str,
    *,
    options: Mapping[str, str] | None = None,
    branch: str = MAIN_BRANCH,
    environment: Environment = SYSTEM,
) -> Table:
    """The table at a path or URI, without a catalog; the options are those of its storage."""
    storage, root = open_storage(location, options)
    return load_table(storage, TableLayout(root, branch), environment)


def load_table(storage: Storage, layout: TableLayout, environment: Environment) -> Table:
    """The table whose files lie under ``layout``, with the newest schema of its branch."""
    if layout.branch != MAIN_BRANCH:
        check_branch_name(layout.branch)
        require_branch(storage, layout)
    schema_id = latest_schema_id(storage, layout)
    if schema_id is None:
        raise NotFoundError(
            f"{storage.uri(layout.root)} is not a table: it has no schema file; "
            "check the path, or create the table through a catalog"
        )
    schema = read_schema(storage, layout, schema_id)
    located = replace(layout, data_path=schema.table_options.data_file_path_directory)
    return Table(TableHandle(storage, located, schema, environment))


class Table:
    """One table; it sees its schema as of the moment it was opened, and always new snapshots."""

    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle

    def __repr__(self) -> str:
        return f"<Table {self.location}>"

    @property
    def location(self) -> str:
        """Where the table lies, for people and other programs."""
        return self._handle.uri

    @property
    def schema(self) -> TableSchema:
        """Columns, keys and options."""
        return self._handle.schema

    @property
    def options(self) -> TableOptions:
        """The typed options."""
        return self._handle.options

    def latest_snapshot(self) -> Snapshot | None:
        """The newest snapshot; None before the first commit."""
        return latest_snapshot(self._handle.storage, self._handle.layout)

    def snapshots(self) -> list[Snapshot]:
        """Every snapshot that has not expired, oldest first."""
        storage, layout = self._handle.storage, self._handle.layout
        found = (
            read_snapshot_if_present(storage, layout, number)
            for number in snapshot_ids(storage, layout)
        )
        return [snapshot for snapshot in found if snapshot is not None]

    def write(
        self,
        data: Any,
        *,
        overwrite: Overwritten | None = None,
        commit: CommitId | None = None,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
        read_snapshot: int | None = None,
    ) -> CommitReport:
        """Add rows in one commit, or put them in place of others; the same ``commit`` twice
        publishes once.

        ``overwrite={}`` replaces the whole table, ``{"dt": "2024-01-01"}`` some partitions and
        ``"dynamic"`` those that get rows. With ``read_snapshot``, the snapshot the rows were
        computed from, the commit is refused if somebody has changed these partitions since.

        With a ``commit`` that was published before nothing is written. The rows are not compared
        then; only another number of them is refused, where ``data`` tells it without being read.

        When this raises a ``LakeError``, nothing was published and nothing is left behind; only
        with ``CommitOutcomeUnknownError`` look first: repeat the call with the same ``commit``.
        """
        options = _commit_options(commit, watermark, properties, read_snapshot)
        handle, replaced = self._handle, self._replaced(overwrite)
        earlier = None if commit is None else earlier_tries(handle, commit, overwrite=replaced)
        if earlier and (
            done := find_replay(handle, earlier, overwrite=replaced, rows=known_rows(data))
        ):
            return done
        with AppendWriter(handle) as writer:
            writer.write(data)
            messages = writer.prepare()
        try:
            report = commit_messages(handle, messages, options, overwrite=replaced, earlier=earlier)
        except CommitOutcomeUnknownError:
            raise  # the table may refer to the files: they stay
        except LakeError:
            writer.abort()
            raise
        if report.replayed:  # a twin with the same identity was faster: its files are the table's
            writer.abort()
        return report

    def new_writer(self) -> AppendWriter:
        """A writer whose messages are committed later, here or in another process."""
        storage, layout = self._handle.storage, self._handle.layout
        base = latest_snapshot_id(storage, layout) or 0
        return AppendWriter(self._handle, base_snapshot=base)

    def commit(
        self,
        messages: Iterable[CommitMessage],
        *,
        overwrite: Overwritten | None = None,
        commit: CommitId | None = None,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
        read_snapshot: int | None = None,
    ) -> CommitReport:
        """Publish prepared files, as ``write`` would have; commit each message once.

        What a compaction made becomes a snapshot of its own, after the one of new rows. An
        ``overwrite`` deletes what it finds, also rows that came in after the messages were
        prepared: name the snapshot they were computed from as ``read_snapshot`` to have it refused.
        """
        messages = check_messages(messages)
        options = _commit_options(commit, watermark, properties, read_snapshot)
        replaced, handle = self._replaced(overwrite), self._handle
        earlier = (
            None
            if commit is None
            else earlier_tries(handle, commit, overwrite=replaced, messages=messages)
        )
        if earlier and (
            done := find_replay(handle, earlier, overwrite=replaced, messages=messages)
        ):
            return done
        admit(handle, messages)
        return commit_messages(
            handle,
            messages,
            options,
            overwrite=replaced,
            earlier=earlier,
            from_elsewhere=True,
        )

    def abort(self, messages: Iterable[CommitMessage]) -> list[str]:
        """Remove the files of messages that are given up; the URIs of those that would not go.

        Refused if the table has one of the files, or if none of them is here. Only once no commit
        of them is under way: not right after ``CommitOutcomeUnknownError``.
        """
        return abort_messages(self._handle, check_messages(messages))

    def find_commit(self, commit: CommitId) -> CommitReport | None:
        """The result of a commit of any kind that was made before; None if it was not."""
        return find_commit(self._handle, commit)

    def truncate(
        self, *, commit: CommitId | None = None, read_snapshot: int | None = None
    ) -> CommitReport:
        """Delete all rows; snapshots before this one keep them until they expire."""
        return self._delete([{}], commit, read_snapshot)

    def drop_partitions(
        self,
        partitions: Iterable[PartitionSpec],
        *,
        commit: CommitId | None = None,
        read_snapshot: int | None = None,
    ) -> CommitReport:
        """Delete the rows of partitions, each named by the values of some partition columns."""
        if not isinstance(partitions, Mapping | str):
            partitions = list(partitions)
        if isinstance(partitions, Mapping | str) or not partitions or not all(partitions):
            raise InvalidRequestError(
                "say which partitions to drop, as in [{'dt': '2024-01-01'}]; truncate() deletes "
                f"all rows. Got {partitions!r}"
            )
        return self._delete(partitions, commit, read_snapshot)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> Scan:
        """Rows of the newest snapshot, or of the one named by its number or by a tag.

        A snapshot that is named is read with the columns the table had then.
        """
        chosen = self._travel(snapshot, tag)
        if chosen is None:
            return Scan(self._handle, self.latest_snapshot(), columns)
        handle = self._handle
        schema = read_schema(handle.storage, handle.layout, chosen.schema_id)
        return Scan(replace(handle, schema=schema), chosen, columns)

    def system_table(self, name: str) -> SystemTable:
        """Metadata as rows: ``system_table("files")`` is ``$files``."""
        return SystemTable(self._handle, find_system_table(name))

    def _delete(
        self,
        partitions: Collection[PartitionSpec],
        commit: CommitId | None,
        read_snapshot: int | None,
    ) -> CommitReport:
        options = CommitOptions(commit=commit, operation="TRUNCATE", read_snapshot=read_snapshot)
        replaced = some_partitions(self.schema, partitions)
        return commit_messages(self._handle, [], options, overwrite=replaced)

    def _replaced(self, overwrite: Overwritten | None) -> PartitionFilter | Dynamic | None:
        if overwrite is None:
            return None
        if overwrite == "dynamic":
            return DYNAMIC
        if not isinstance(overwrite, Mapping):
            raise InvalidRequestError(
                "overwrite is {} for the whole table, {'dt': '2024-01-01'} for some partitions or "
                f"'dynamic' for those that get rows, got {overwrite!r}"
            )
        return some_partitions(self.schema, [overwrite])

    def _travel(self, snapshot: int | None, tag: str | None) -> Snapshot | None:
        """The snapshot asked for; None when nobody asks for one."""
        if snapshot is not None and tag is not None:
            raise InvalidRequestError(f"say snapshot={snapshot} or tag={tag!r}, not both")
        if snapshot is not None and not is_whole_number(snapshot):
            raise InvalidRequestError(f"a snapshot is named by its number, got {snapshot!r}")
        storage, layout = self._handle.storage, self._handle.layout
        if tag is not None:
            return read_tag(storage, layout, tag).snapshot
        return None if snapshot is None else read_snapshot(storage, layout, snapshot)


def _commit_options(
    commit: CommitId | None,
    watermark: int | None,
    properties: Mapping[str, str] | None,
    read_snapshot: int | None,
) -> CommitOptions:
    return CommitOptions(
        commit=commit,
        watermark=watermark,
        properties={} if properties is None else properties,
        read_snapshot=read_snapshot,
    )


class SystemTable(Table):
    """A table's own metadata as rows, such as ``shop.orders$files``; it can only be read."""

    def __init__(self, handle: TableHandle, declaration: SystemTableDeclaration[Any]) -> None:
        super().__init__(handle)
        self._declaration = declaration

    def __repr__(self) -> str:
        return f"<SystemTable {self.location}${self._declaration.name}>"

    @property
    def schema(self) -> TableSchema:
        """The columns of the metadata."""
        return self._declaration.schema

    def write(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: metadata changes with the table."""
        self._refuse()

    def new_writer(self) -> NoReturn:
        """Refused: metadata changes with the table."""
        self._refuse()

    def commit(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: metadata changes with the table."""
        self._refuse()

    def abort(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: metadata changes with the table."""
        self._refuse()

    def truncate(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: metadata changes with the table."""
        self._refuse()

    def drop_partitions(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: metadata changes with the table."""
        self._refuse()

    # A scan with the same face: what it cannot do, such as splits for many readers, it has not.
    def scan(  # type: ignore[override]
        self,
        columns: Sequence[str] | None = None,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
    ) -> SystemScan:
        """The rows now or, where one snapshot is shown, at the one named by number or tag."""
        chosen = self._travel(snapshot, tag)
        if chosen is not None and not self._declaration.of_snapshot:
            raise InvalidRequestError(
                f"${self._declaration.name} shows what is there now: it takes no snapshot or tag"
            )
        return SystemScan(self._declaration, Source(self._handle, chosen), columns)

    def _refuse(self) -> NoReturn:
        raise UnsupportedError(
            f"${self._declaration.name} of {self.location} is a system table: it can only be read"
        )
