"""Data files of other writers: every row of every file, and the statistics beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from lakeformat.files.column_statistics import ColumnStatistics
from lakeformat.paimon.datafile.file_description import FileOrigin, describe_append_file
from lakeformat.paimon.datafile.file_statistics import file_statistics, key_statistics
from lakeformat.paimon.datafile.key_value_writer import KeyValueWriter
from lakeformat.paimon.datafile.reader import read_batches, read_key_values
from lakeformat.paimon.datafile.rolling_writer import RollingWriter
from lakeformat.paimon.layout import DataFileNames
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import open_storage
from lakeformat.types.values import values_from_arrow
from tests.golden.tables import HOW_TO_UNSKIP, GoldenTable, golden_tables
from tests.golden.values import assert_same_rows, rows_of

TABLES = {table.name: table for table in golden_tables()}
ORIGIN = FileOrigin(0, datetime(2024, 1, 1))


@dataclass(frozen=True)
class GoldenFile:
    """A data file a manifest adds, with all that is needed to read it."""

    table: GoldenTable
    path: Path
    meta: DataFileMeta
    schemas: dict[int, TableSchema]

    @property
    def schema(self) -> TableSchema:
        """The one it was written with."""
        return self.schemas[self.meta.schema_id]

    @property
    def newest(self) -> TableSchema:
        return self.schemas[max(self.schemas)]

    @property
    def key_columns(self) -> list[str]:
        return [c for c in self.schema.primary_keys if c not in self.schema.partition_keys]

    def read(self, **wanted: Any) -> pa.Table:
        storage, path = open_storage(str(self.path))
        is_keyed = bool(self.schema.primary_keys)
        read = read_key_values if is_keyed else read_batches
        batches = read(
            storage,
            path,
            file_fields=self.schema.fields,
            **{"wanted": self.newest.fields, "row_count": self.meta.row_count, **wanted},
        )
        return pa.Table.from_batches(batches)


def golden_files() -> Iterator[GoldenFile]:
    """Each file once, found through manifests rather than directories."""
    for table in TABLES.values():
        root = Path(table.location)
        schemas = {
            schema.id: schema
            for path in root.glob("schema/schema-*")
            for schema in [TableSchema.from_json(json.loads(path.read_bytes()))]
        }
        metas = {}
        for manifest in root.glob("manifest/manifest-*"):
            if not manifest.name.startswith("manifest-list-"):
                with manifest.open("rb") as stream:
                    for entry in fastavro.reader(stream):
                        meta = DataFileMeta.from_record(entry["_FILE"])
                        metas[meta.file_name] = meta
        for path in sorted(root.glob("**/bucket-*/*")):
            if path.name in metas:
                yield GoldenFile(table, path, metas[path.name], schemas)


FILES = list(golden_files())
needs_files = pytest.mark.skipif(not FILES, reason=HOW_TO_UNSKIP)
each_file = pytest.mark.parametrize(
    "file", FILES, ids=lambda file: f"{file.table.name}/{file.path.name[:18]}"
)
PLAIN_APPEND = [
    "format/append_bucketed",
    "format/append_partitioned",
    "format/odd_types_parquet",
    "format/schema_evolved",
    "format/tags_and_branches",
    *(name for name in TABLES if "all_types" in name or "file_index" in name),
    "format-java/special_types",
    "format-java/stats_truncation",
    "format-java/partition_names_legacy_true",
]
JAVA_APPEND = [
    file
    for file in FILES
    if file.table.name.startswith("format-java/") and not file.schema.primary_keys
]
JAVA_KEYED = [
    file
    for file in FILES
    if file.table.name.startswith("format-java/")
    and file.schema.primary_keys
    and file.path.name.startswith("data-")
]


def files_of(name: str) -> list[GoldenFile]:
    return [file for file in FILES if file.table.name == name]


@needs_files
@each_file
def test_every_file_has_the_rows_its_manifest_counts_and_every_column_decodes(file: GoldenFile):
    rows = file.read()
    assert rows.num_rows == file.meta.row_count
    rows.validate(full=True)


@needs_files
@pytest.mark.parametrize("name", PLAIN_APPEND)
def test_the_files_of_an_append_table_are_its_rows(name):
    rows = [row for file in files_of(name) for row in rows_of(file.read())]
    assert_same_rows(rows, TABLES[name].rows())


@needs_files
@each_file
def test_a_column_alone_is_what_it_is_among_all(file: GoldenFile):
    last = file.newest.fields[-1]
    whole, alone = file.read(), file.read(wanted=(last,))
    assert alone.column(last.name).equals(whole.column(last.name))


@needs_files
def test_thin_files_have_no_key_columns_and_read_like_others():
    (thin,) = files_of("format-java/thin_mode")
    assert [row["_VALUE_KIND"] for row in rows_of(thin.read())] == [0, 0]
    assert_same_rows(
        [{name: row[name] for name in thin.table.column_names} for row in rows_of(thin.read())],
        thin.table.rows(),
    )


@needs_files
def test_a_postponed_file_has_its_rows_though_the_table_shows_none():
    (file,) = files_of("format/pk_postpone_bucket")
    assert [row["_SEQUENCE_NUMBER"] for row in rows_of(file.read())] == [0, 1]


@needs_files
@each_file
def test_statistics_hold_every_value_of_their_file(file: GoldenFile):
    rows = file.read()
    known = file_statistics(file.meta, file.schema.fields, file.newest.fields)
    for field, column in zip(file.newest.fields, known, strict=True):
        values = [
            value
            for chunk in rows.column(field.name).chunks
            for value in values_from_arrow(chunk, field.type)
        ]
        present = [value for value in values if value is not None]
        assert column.null_count in (None, len(values) - len(present))
        if column.minimum is not None:
            assert all(column.minimum <= value <= column.maximum for value in present)


@needs_files
def test_truncated_statistics_are_what_the_writer_cut():
    (file,) = files_of("format-java/stats_truncation")
    known = dict(
        zip(
            file.newest.column_names,
            file_statistics(file.meta, file.schema.fields, file.newest.fields),
            strict=True,
        )
    )
    assert known["s"] == ColumnStatistics("abcdefghijklmnop", "中文abcdefghijklmo", 0)
    assert known["b"] == ColumnStatistics(b"\x01" + b"\xff" * 15, b"\x05", 0)
    assert known["arr"] == ColumnStatistics()


@needs_files
def test_a_column_added_after_the_file_is_all_null_and_a_reused_name_is_another_column():
    older, newer = sorted(files_of("format/schema_evolved"), key=lambda file: file.meta.schema_id)
    for file in (older, newer):
        names = file.newest.column_names
        known = file_statistics(file.meta, file.schema.fields, file.newest.fields)
        column = dict(zip(names, known, strict=True))["gone"]
        is_stored = file.newest.fields[names.index("gone")].id in {
            field.id for field in file.schema.fields
        }
        assert column.null_count == (None if is_stored else file.meta.row_count)


@needs_files
@pytest.mark.parametrize("file", JAVA_APPEND, ids=lambda f: f"{f.table.name}/{f.path.name[:18]}")
def test_our_statistics_of_the_same_rows_are_java_s_byte_for_byte(file: GoldenFile, tmp_path):
    options = TableOptions(
        {
            key: value
            for key, value in file.schema.options.items()
            if "stats" in key or key == "file.format"
        }
    )
    storage, directory = open_storage(str(tmp_path))
    names = DataFileNames(options, "unique")
    writer = RollingWriter(storage, directory, file.schema.fields, options, names.next_data)
    for batch in file.read(wanted=file.schema.fields).to_batches():
        writer.write(batch)
    (written,) = writer.finish()
    meta = describe_append_file(
        written, file.schema.fields, ORIGIN, first_sequence_number=0, dense=True
    )
    assert meta.value_stats == file.meta.value_stats
    assert meta.value_stats_cols == file.meta.value_stats_cols


@needs_files
@pytest.mark.parametrize("name", ["all_types_parquet", "all_types_orc", "all_types_avro"])
def test_our_file_of_the_same_columns_declares_what_java_s_does(name, tmp_path):
    (file,) = files_of(f"format-java/{name}")
    options = TableOptions({"file.format": name.rpartition("_")[2]})
    storage, directory = open_storage(str(tmp_path))
    names = DataFileNames(options, "unique")
    writer = RollingWriter(storage, directory, file.schema.fields, options, names.next_data)
    writer.write(file.read().to_batches()[0])
    (written,) = writer.finish()
    assert declared(Path(written.path)) == declared(file.path)


def declared(path: Path) -> Any:
    """Column types and ids as the file itself has them."""
    match path.suffix:
        case ".parquet":
            # After the name of the whole, and without Java's mark of the entries of a map.
            text = str(pq.ParquetFile(path).schema).split("{", 1)[1]
            return text.replace("key_value (Map)", "key_value")
        case ".orc":
            return orc.ORCFile(path).schema.to_string(show_field_metadata=True)
        case ".avro":
            with path.open("rb") as stream:
                return fastavro.reader(stream).writer_schema  # with full names of records


@needs_files
@pytest.mark.parametrize("file", JAVA_KEYED, ids=lambda f: f"{f.table.name}/{f.path.name[:18]}")
def test_our_description_of_a_primary_key_file_is_java_s(file: GoldenFile, tmp_path):
    options = TableOptions(
        {
            key: file.schema.options[key]
            for key in ["data-file.thin-mode"]
            if key in file.schema.options
        }
    )
    storage, directory = open_storage(str(tmp_path))
    names = DataFileNames(options, "unique")
    writer = KeyValueWriter(
        storage, directory, file.schema.fields, file.key_columns, options, names.next_data
    )
    for batch in file.read(wanted=file.schema.fields).to_batches():
        writer.write(batch)
    (meta,) = writer.finish(ORIGIN)
    same = (
        "key_stats",
        "value_stats",
        "value_stats_cols",
        "min_key",
        "max_key",
        "min_sequence_number",
        "max_sequence_number",
        "delete_row_count",
        "row_count",
    )
    assert [getattr(meta, name) for name in same] == [getattr(file.meta, name) for name in same]


@needs_files
def test_key_statistics_are_known_in_thin_mode_too():
    (thin,) = files_of("format-java/thin_mode")
    by_name = {field.name: field for field in thin.schema.fields}
    known = key_statistics(thin.meta, [by_name[name] for name in thin.key_columns])
    assert all(column.minimum is not None for column in known)
