# SPDX-License-Identifier: Apache-2.0
"""Creates a table from a directory of plain Parquet and ORC files, which are used in place if
possible.

The source files are not changed; at most a mark file is added. A file that is registered in place
belongs to the table from then on: it is deleted after a compaction has replaced it and the
snapshots that use it have expired.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lakeformat.catalog.base import Catalog
from lakeformat.catalog.transfer.footers import footer_statistics
from lakeformat.catalog.transfer.migrate_plan import (
    CONVERTED,
    COPIED,
    REGISTERED,
    SourceFile,
    address_of,
    choose,
    columns_of,
    partition_columns,
    partition_of,
)
from lakeformat.catalog.transfer.ownership import Owner, claim, refuse_owned, withdraw
from lakeformat.catalog.transfer.plain_files import PlainDirectory, find_plain_files
from lakeformat.catalog.transfer.plain_rows import read_plain_rows
from lakeformat.catalog.transfer.transfer_reports import MigratedFile, MigrateReport
from lakeformat.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
)
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.commit.commit_report import CommitReport
from lakeformat.paimon.datafile.file_statistics import encode_value_statistics
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import data_file_name, partition_directory
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta, FileSource, local_wall_clock
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.kinds import UNAWARE_BUCKET
from lakeformat.paimon.partition import partition_path
from lakeformat.paimon.schema import TableSchema, new_schema
from lakeformat.paimon.table import Table
from lakeformat.paimon.write.table_writer import TableWriter
from lakeformat.storage import Storage, open_storage
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.tables.table import offering_arguments
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.count_text import counted
from lakeformat.types.sentence import sentence
from lakeformat.types.type_text import type_to_json
from lakeformat.types.types import DataField

__all__ = ["migrate_directory"]

_log = logging.getLogger(__name__)
_CHUNK = 8 << 20
_UNAWARE = {"bucket": str(UNAWARE_BUCKET)}


@offering_arguments
def migrate_directory(
    catalog: Catalog,
    source: str,
    name: str,
    *,
    partition_types: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    copy: bool = False,
    dry_run: bool = False,
) -> MigrateReport:
    """Create an append table ``database.table`` from the Parquet and ORC files below a directory.

    Directories ``key=value`` become partition columns of type STRING, or of the SQL type in
    ``partition_types``. Files are registered in place if possible; the catalog's option
    ``external-roots`` must then allow their directory. With ``copy`` they are copied into the
    table. A file that does not fit the columns is rewritten.

    To resume an interrupted migration, repeat the call. If another table has the name,
    ``AlreadyExistsError`` is raised. ``InvalidRequestError`` is raised if ``options`` set buckets.
    For files in place, it is also raised if their directory is not allowed, or if they belong to
    another table. ``dry_run`` only lists the files, and what would be done with each.
    """
    storage, root = open_storage(source, storage_options)
    directory = find_plain_files(storage, root)
    columns = columns_of(directory, storage.uri(root), partition_types or {})
    settings = {**_UNAWARE, **(options or {})}
    schema = new_schema(columns, partition_by=directory.keys, options=settings, time_millis=0)
    if schema.table_options.bucket != UNAWARE_BUCKET:
        raise InvalidRequestError(
            f"cannot migrate with 'bucket' = {schema.table_options.bucket}, because plain files "
            "have no buckets: leave out the option 'bucket', or write the rows into a "
            "table with buckets"
        )
    chosen = choose(storage, root, schema, directory.files, copy=copy)
    catalog.place_of_new_table(name)  # raises for an invalid name
    registers = any(each.how == REGISTERED for each in chosen)
    if registers:
        schema = _naming_source(catalog, name, schema, address_of(storage, root))
        refuse_owned(storage, root, directory.marks, _owner(catalog, name))
    done = None
    if not dry_run:
        identity = _identity(storage.uri(root), name)
        table = _made_table(catalog, name, columns, schema, identity)
        with _owned(table, storage, root) if registers else nullcontext():
            done = table.find_commit(identity) or _Migration(table, storage, chosen).run(identity)
    report = _report(catalog, name, storage.uri(root), schema, directory, chosen, done)
    _log.info("migration to %s: %s", name, report.reason)
    return report


def _naming_source(catalog: Catalog, name: str, schema: TableSchema, source: str) -> TableSchema:
    """Return the schema with the source directory as ``data-file.external-paths``.

    If the catalog does not allow that path, ``InvalidRequestError`` is raised. The option
    ``data-file.external-paths.strategy`` is not set, so the table writes no new files there.
    """
    key = TableOptions.data_file_external_paths.key
    if key in schema.options:
        raise InvalidRequestError(
            f"option {key!r} must not be given: a migration in place sets it to the directory of "
            f"the files, {source}. Leave it out and set yours after the migration, or pass "
            "copy=True"
        )
    try:
        catalog.check_external_paths(name, [source])
    except InvalidRequestError as reason:
        raise InvalidRequestError(
            "the files cannot be used in place: their directory would become an external path "
            f"of the new table, but {sentence(reason)} Or copy the files into the table: pass "
            "copy=True"
        ) from None
    return replace(schema, options={**schema.options, key: source})


def _owner(catalog: Catalog, name: str) -> Owner | None:
    try:
        return Owner.of(catalog.table(name)._handle)
    except NotFoundError:
        return None


@contextmanager
def _owned(table: Table, source: Storage, root: str) -> Iterator[None]:
    """Mark the source directory as owned by the table, for a with block that commits the files.

    The mark is kept after the commit. If nothing was committed, the mark is deleted, unless it
    existed before.
    """
    made = claim(source, root, Owner.of(table._handle))

    def give_back() -> None:
        if made:
            with suppress(LakeError):
                withdraw(source, root)

    with kept_if_published(give_back):
        yield


def _identity(source: str, name: str) -> CommitId:
    """Return the commit identity of the migration. It is the same in each attempt, so that the
    files are committed once.
    """
    return CommitId(f"migrate-{hashlib.sha256(f'{source} {name}'.encode()).hexdigest()[:32]}", 1)


def _made_table(
    catalog: Catalog,
    name: str,
    columns: pa.Schema,
    schema: TableSchema,
    identity: CommitId,
) -> Table:
    """Create the table, or return the table that an earlier attempt created.

    An existing table is returned if it has the columns of ``schema`` and the commit ``identity``.
    It is also returned if it has the columns and options of ``schema``, no primary key and no
    snapshots. Any other table of this name raises ``AlreadyExistsError``.
    """
    table = catalog.create_table(
        name,
        columns,
        partition_by=schema.partition_keys,
        options=schema.options,
        exist_ok=True,
    )
    same = table.schema.fields == schema.fields and (
        table.schema.partition_keys == schema.partition_keys
    )
    is_new = (
        same
        and schema.options.items() <= table.schema.options.items()
        and not table.schema.primary_keys
        and table.latest_snapshot() is None
    )
    if not is_new and (not same or table.find_commit(identity) is None):
        raise AlreadyExistsError(
            f"table {name!r} exists in {catalog.location}, and no earlier attempt of this "
            "migration with the same columns and options created it: choose another name"
        )
    return table


@dataclass(slots=True)
class _Migration:
    table: Table
    source: Storage
    chosen: Sequence[SourceFile]
    _written: list[str] = field(default_factory=list)

    @property
    def _handle(self) -> TableHandle:
        return self.table._handle

    def run(self, identity: CommitId) -> CommitReport:
        """Commit all files in one snapshot and return the report.

        If the commit certainly failed, or if another attempt committed first, delete the files that
        this attempt wrote.
        """
        writer = self.table.new_writer()
        try:
            messages = [*self._messages(), *self._converted(writer)]
        except BaseException:
            self._give_up(writer)
            raise
        with kept_if_published(lambda: self._give_up(writer)):
            report = commit_messages(self._handle, messages, CommitOptions(commit=identity))
        if report.replayed:  # another attempt committed first: the table uses its files
            self._give_up(writer)
        return report

    def _give_up(self, writer: TableWriter) -> None:
        writer.abort()
        for path in self._written:
            with suppress(LakeError):
                self._handle.storage.delete(path)

    def _converted(self, writer: TableWriter) -> list[CommitMessage]:
        handle = self._handle
        fields = to_arrow_schema(handle.schema.fields)
        for each in self.chosen:
            if each.how == CONVERTED:
                values = partition_columns(handle.schema, each.file)
                writer.write(read_plain_rows(self.source, each.file, fields, values))
        return writer.prepare()

    def _messages(self) -> Iterator[CommitMessage]:
        """Yield a commit message for each partition, with its registered and copied files."""
        by_partition: dict[bytes, list[DataFileMeta]] = {}
        for number, each in enumerate(self.chosen):
            if each.how != CONVERTED:
                partition = partition_of(self._handle.schema, each.file)
                file = self._described(each, partition, number)
                by_partition.setdefault(partition, []).append(file)
        for partition, files in by_partition.items():
            yield CommitMessage(
                table=self._handle.uri,
                partition=partition,
                bucket=0,
                total_buckets=UNAWARE_BUCKET,
                base_snapshot=0,
                branch=self._handle.layout.branch,
                new_files=tuple(files),
            )

    def _described(self, each: SourceFile, partition: bytes, number: int) -> DataFileMeta:
        handle, file = self._handle, each.file
        statistics, covered = encode_value_statistics(
            handle.schema.fields,
            footer_statistics(file.statistics, self._in_file()),
            dense=handle.options.statistics_dense_store,
        )
        name, external = file.info.name, address_of(self.source, file.info.path)
        if each.how == COPIED:
            name = self._copied(each, partition, number)
        made = file.info.modified_millis or handle.environment.now_millis()
        return DataFileMeta(
            file_name=name,
            file_size=file.info.size,
            row_count=file.rows,
            min_sequence_number=0,
            max_sequence_number=max(file.rows - 1, 0),
            schema_id=handle.schema.id,
            value_stats=statistics,
            value_stats_cols=covered,
            creation_time=local_wall_clock(made),
            delete_row_count=0,
            file_source=FileSource.APPEND,
            external_path=None if each.how == COPIED else external,
        )

    def _in_file(self) -> list[DataField | None]:
        """Return the fields of the schema, with None in place of each partition column.

        The values of partition columns are in the names of directories, not in the files.
        """
        schema = self._handle.schema
        return [
            None if column.name in schema.partition_keys else column for column in schema.fields
        ]

    def _copied(self, each: SourceFile, partition: bytes, number: int) -> str:
        handle = self._handle
        unique, extension = handle.environment.new_id(), str(each.file.format)
        name = data_file_name(handle.options.data_file_prefix, unique, number, extension)
        path = handle.layout.data_file(0, name, partition_path(handle.schema, partition))
        self._written.append(path)
        with (
            self.source.open_input(each.file.info.path) as stream,
            handle.storage.open_output(path) as sink,
        ):
            shutil.copyfileobj(stream, sink, _CHUNK)
        return name


def _report(
    catalog: Catalog,
    name: str,
    source: str,
    schema: TableSchema,
    directory: PlainDirectory,
    chosen: Sequence[SourceFile],
    done: CommitReport | None,
) -> MigrateReport:
    files = tuple(
        MigratedFile(
            file=each.file.uri,
            partition=_shown(schema, each),
            how=each.how,
            reason=each.reason,
            rows=each.file.rows,
            bytes=each.file.info.size,
        )
        for each in chosen
    )
    counts = Counter(each.how for each in chosen)
    counted_by_how = ", ".join(f"{count} {how}" for how, count in sorted(counts.items()))
    return MigrateReport(
        source=source,
        table=name,
        dry_run=done is None,
        columns=tuple((column.name, str(type_to_json(column.type))) for column in schema.fields),
        partition_by=schema.partition_keys,
        files=files,
        skipped=directory.skipped,
        rows=sum(file.rows for file in files),
        snapshot_id=None if done is None else done.snapshot_id,
        replayed=False if done is None else done.replayed,
        reason=f"{counted(len(files), 'file')} would be migrated: {counted_by_how}"
        if done is None
        else f"{counted_by_how}: {done.reason}",
    )


def _shown(schema: TableSchema, each: SourceFile) -> str:
    pairs = zip(schema.partition_keys, each.file.values, strict=True)
    return partition_directory([*pairs])
