"""The table a user holds: thin, every method hands over to the package that does the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakeformat.commit.append import commit_append, find_earlier_append
from lakeformat.commit.identity import CommitId
from lakeformat.commit.report import CommitReport
from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import CommitOutcomeUnknownError, LakeError, NotFoundError
from lakeformat.handle import TableHandle
from lakeformat.layout import TableLayout
from lakeformat.metadata.commit_message import CommitMessage
from lakeformat.metadata.schema_file import latest_schema_id, read_schema
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.metadata.snapshot_directory import (
    latest_snapshot,
    read_snapshot,
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.options import TableOptions
from lakeformat.read.scan import Scan
from lakeformat.schema import TableSchema
from lakeformat.storage import Storage, open_storage
from lakeformat.write.append_writer import AppendWriter

__all__ = ["Table", "load_table", "open_table"]


def open_table(location: str, *, environment: Environment = SYSTEM) -> Table:
    """The table at a path or URI, without a catalog."""
    storage, root = open_storage(location)
    return load_table(storage, TableLayout(root), environment)


def load_table(storage: Storage, layout: TableLayout, environment: Environment) -> Table:
    """The table whose files lie under ``layout``, with its newest schema."""
    schema_id = latest_schema_id(storage, layout)
    if schema_id is None:
        raise NotFoundError(
            f"{storage.uri(layout.root)} is not a table: it has no schema file; "
            "check the path, or create the table through a catalog"
        )
    schema = read_schema(storage, layout, schema_id)
    return Table(TableHandle(storage, layout, schema, environment))


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
        commit: CommitId | None = None,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> CommitReport:
        """Append rows in one commit; the same ``commit`` twice publishes once.

        When this raises, nothing was published and nothing is left behind, except with
        ``CommitOutcomeUnknownError``: then repeat the call with the same ``commit``.
        """
        if commit is not None and (done := find_earlier_append(self._handle, commit)):
            return done
        with self.new_writer() as writer:
            writer.write(data)
            messages = writer.prepare()
        try:
            report = self.commit(
                messages, commit=commit, watermark=watermark, properties=properties
            )
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
        return AppendWriter(self._handle)

    def commit(
        self,
        messages: Sequence[CommitMessage],
        *,
        commit: CommitId | None = None,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> CommitReport:
        """Publish prepared files in one snapshot."""
        return commit_append(
            self._handle, messages, commit=commit, watermark=watermark, properties=properties
        )

    def scan(self, columns: Sequence[str] | None = None, *, snapshot: int | None = None) -> Scan:
        """Rows of the newest snapshot, or of the one named."""
        if snapshot is None:
            return Scan(self._handle, self.latest_snapshot(), columns)
        chosen = read_snapshot(self._handle.storage, self._handle.layout, snapshot)
        return Scan(self._handle, chosen, columns)
