"""The reading half of the format's conformance checklist (section 11), schemas to manifests.

Each line is a test. Its bytes are made here, or are ours rewritten into the shape another writer
or release gave them; the golden tables, where such files are read whole, are in
``test_reading_rows.py``.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.files.vector_record import DeletionVectorRange
from lakeformat.paimon.binary_row import (
    encode_row,
    frame_row,
)
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.index_manifest import (
    DELETION_VECTORS,
    IndexManifestEntry,
    read_index_manifest,
    write_index_manifest,
)
from lakeformat.paimon.metadata.manifest import (
    FileKind,
    ManifestEntry,
    live_files,
    live_rows,
    read_manifests,
    write_manifest,
)
from lakeformat.paimon.metadata.manifest_columns.read import decode_manifest_by_record
from lakeformat.paimon.metadata.manifest_list import (
    read_manifest_list,
    summarise,
    write_manifest_list,
)
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW, SimpleStats
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot, snapshot_ids
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import LocalStorage, MemoryStorage
from lakeformat.types.type_text import parse_type
from tests.manifest_entries import entries_in

STORAGE = LocalStorage()
LAYOUT = TableLayout("t")
PLAIN_SCHEMA = {
    "id": 0,
    "fields": [{"id": 0, "name": "a", "type": "INT"}],
    "highestFieldId": 0,
    "partitionKeys": [],
    "primaryKeys": [],
}
FILE = DataFileMeta(
    file_name="data-u-0.parquet",
    file_size=100,
    row_count=3,
    min_sequence_number=0,
    max_sequence_number=2,
    schema_id=0,
)


def memory(**contents: bytes) -> MemoryStorage:
    """A storage with manifests of these names."""
    storage = MemoryStorage("checklist")
    for name, content in contents.items():
        storage.overwrite(LAYOUT.manifest(name), content)
    return storage


def schema_file(**members: Any) -> TableSchema:
    storage = MemoryStorage("checklist")
    content = {**PLAIN_SCHEMA, **members}
    storage.overwrite(LAYOUT.schema(0), json.dumps(content).encode())
    return read_schema(storage, LAYOUT, 0)


def new_table(
    folder: Path, columns: list[tuple[str, str]] | None = None, **options: str
) -> lake.Table:
    catalog = lake.open_catalog(str(folder))
    catalog.create_database("shop", exist_ok=True)
    return catalog.create_table("shop.t", columns or [("id", "BIGINT")], options=options)


def reshaped(content: bytes, change: Any, codec: str = "null") -> bytes:
    """An Avro file whose schema and records ``change`` has edited."""
    reader = fastavro.reader(io.BytesIO(content))
    schema, records = reader.writer_schema, list(reader)
    change(schema, records)
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec=codec)
    return out.getvalue()


def test_schemas_of_versions_1_to_3_have_their_defaults_and_foreign_members_are_forgiven():
    given = {"bucket": "4", "file.format": "avro"}
    for version, bucket, file_format in [
        ({}, "1", "orc"),  # a missing version is 1
        ({"version": 1}, "1", "orc"),
        ({"version": 2}, "-1", "orc"),
        ({"version": 3}, "-1", "parquet"),
    ]:
        schema = schema_file(**version)
        options = schema.table_options
        found = (schema.version, options.text(TableOptions.bucket), str(options.file_format))
        assert found == (version.get("version", 1), bucket, file_format), version
        assert (schema.time_millis, schema.options) == (0, {}), version
        set_explicitly = schema_file(**version, options=given).options
        assert set_explicitly == given, f"options of version {version} win over its defaults"
    foreign = {"unknown": {"deep": []}, "fields": [{**PLAIN_SCHEMA["fields"][0], "owner": 1}]}
    assert schema_file(**foreign) == schema_file(), "unknown members are ignored"
    assert schema_file(comment=None).comment is None, "a null comment is none"
    assert schema_file().comment is None, "an absent comment is none"
    assert schema_file(comment="c").comment == "c"
    texts = schema_file(options={"a": 3, "b": True, "c": False, "d": 1.5, "e": "x"}).options
    assert texts == {"a": "3", "b": "true", "c": "false", "d": "1.5", "e": "x"}


# Each as Java writes it, with everything else that means the same.
TYPE_STRINGS = {
    "CHAR(5)": [],
    "CHAR(1)": ["CHAR"],
    "VARCHAR(20)": [],
    "VARCHAR(1)": ["VARCHAR"],
    "STRING": ["VARCHAR(2147483647)"],
    "BOOLEAN": [],
    "BINARY(4)": [],
    "BINARY(1)": ["BINARY"],
    "VARBINARY(8)": [],
    "VARBINARY(1)": ["VARBINARY"],
    "BYTES": ["VARBINARY(2147483647)"],
    "DECIMAL(10, 2)": ["DECIMAL(10,2)", "NUMERIC(10, 2)", "DEC(10,2)"],
    "DECIMAL(10, 0)": ["DECIMAL", "NUMERIC(10)", "DEC(10)"],
    "DECIMAL(38, 38)": [],
    "TINYINT": [],
    "SMALLINT": [],
    "INT": ["INTEGER", "int", " INT ", "INT NULL"],
    "BIGINT": [],
    "FLOAT": [],
    "DOUBLE": ["DOUBLE PRECISION"],
    "DATE": [],
    "TIME(0)": ["TIME", "TIME(0) WITHOUT TIME ZONE"],
    "TIME(3)": ["TIME(3) WITHOUT TIME ZONE"],
    "TIMESTAMP(6)": ["TIMESTAMP", "TIMESTAMP WITHOUT TIME ZONE"],
    "TIMESTAMP(0)": ["timestamp ( 0 ) without time zone"],
    "TIMESTAMP(9)": [],
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": ["TIMESTAMP_LTZ(3)"],
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": ["TIMESTAMP_LTZ", "TIMESTAMP WITH LOCAL TIME ZONE"],
    "VARIANT": [],
    "BLOB": [],
    "GEOMETRY(OGC:CRS84)": [],
    "GEOGRAPHY(OGC:CRS84, spherical)": [],
}


def test_every_type_string_and_alias_and_nested_object_is_read_with_its_nullability():
    def stored(column: Any) -> Any:
        schema = schema_file(fields=[{"id": 0, "name": "a", "type": column}])
        return json.loads(schema.to_json())["fields"][0]["type"]

    for canonical, aliases in TYPE_STRINGS.items():
        for text in (canonical, *aliases):
            assert stored(text) == canonical, text
            if not text.endswith(" NULL"):
                assert stored(f"{text} NOT NULL") == f"{canonical} NOT NULL", text
    inner = {"id": 1, "name": "x", "type": "INT NOT NULL"}
    deep = {"type": "ROW", "fields": [{"id": 3, "name": "z", "type": "BYTES"}]}
    for members in (
        {"type": "ARRAY", "element": "STRING NOT NULL"},
        {"type": "VECTOR", "element": "FLOAT", "length": 3},
        {"type": "MULTISET", "element": "STRING"},
        {"type": "MAP", "key": "INT NOT NULL", "value": {"type": "ARRAY", "element": "DATE"}},
        {"type": "ROW", "fields": [inner, {"id": 2, "name": "y", "type": deep}]},
    ):
        strict = {**members, "type": f"{members['type']} NOT NULL"}
        for plain, is_nullable in ((members, True), (strict, False)):
            assert stored(plain) == plain
            # The text decides, whatever pypaimon's redundant member says.
            for redundant in (True, False):
                assert stored({**plain, "nullable": redundant}) == plain
            column = schema_file(fields=[{"id": 0, "name": "a", "type": plain}]).fields[0]
            assert column.type.nullable is is_nullable, plain


MINIMAL_SNAPSHOT = {
    "id": 1,
    "schemaId": 0,
    "baseManifestList": "base",
    "deltaManifestList": "delta",
    "commitUser": "me",
    "commitIdentifier": 2**63 - 1,
    "commitKind": "APPEND",
    "timeMillis": 5,
}
OPTIONAL_MEMBERS = {
    "version": 3,
    "uuid": "u",
    "baseManifestListSize": 1,
    "deltaManifestListSize": 2,
    "changelogManifestList": "changes",
    "changelogManifestListSize": 3,
    "indexManifest": "index",
    "writerVersion": "2.1",
    "totalRecordCount": 4,
    "deltaRecordCount": 5,
    "changelogRecordCount": 6,
    "watermark": -(2**63),
    "statistics": "stat",
    "properties": {"a": "b"},
    "nextRowId": 7,
    "operation": "WRITE",
}


def test_a_snapshot_is_read_without_any_optional_member_and_with_members_nobody_knows():
    def snapshot(members: dict[str, Any]) -> Snapshot:
        storage = MemoryStorage("checklist")
        storage.overwrite(LAYOUT.snapshot(1), json.dumps(members).encode())
        return read_snapshot(storage, LAYOUT, 1)

    whole = {**MINIMAL_SNAPSHOT, **OPTIONAL_MEMBERS}
    assert snapshot(whole).members() == whole
    bare = snapshot(MINIMAL_SNAPSHOT).members()
    zeros = {"version": 0, "totalRecordCount": 0, "deltaRecordCount": 0}
    assert bare == {**MINIMAL_SNAPSHOT, **zeros}, "numbers are 0, everything else is null"
    for member in OPTIONAL_MEMBERS:
        without = {key: value for key, value in whole.items() if key != member}
        expected = {**without, **({member: 0} if member in zeros else {})}
        assert snapshot(without).members() == expected, f"without {member}"
        assert snapshot({**whole, member: None}).members() == expected, f"{member} null"
    assert snapshot({**whole, "logOffsets": {"0": 1}, "x": None}) == snapshot(whole)


def test_hints_that_are_missing_stale_negative_or_garbage_change_no_answer(tmp_path):
    table = new_table(tmp_path)
    for number in (1, 2, 3):
        table.write(pa.table({"id": [number]}))
    layout = table._handle.layout
    directory = Path(layout.snapshot_directory)
    for stray in (".snapshot-4.0b5e.tmp", "snapshot-5f3a.tmp", "snapshot-9.tmp", "snapshot-07"):
        (directory / stray).write_bytes(b"{")
    for hint in (None, b"", b"1", b"2", b"3", b"99", b"0", b"-1", b"two", b"\xff\xfe", b"3\n"):
        for name in ("LATEST", "EARLIEST"):
            (directory / name).unlink(missing_ok=True)
            if hint is not None:
                (directory / name).write_bytes(hint)
        latest = table.latest_snapshot()
        assert latest is not None, hint
        assert latest.id == 3, f"LATEST is {hint!r}"
        assert snapshot_ids(STORAGE, layout) == [1, 2, 3], "temporary files are no snapshots"
    assert table.scan().to_arrow()["id"].to_pylist() == [1, 2, 3]


FULL_FILE = replace(
    FILE,
    value_stats=SimpleStats(EMPTY_ROW, EMPTY_ROW, (0, None, 2)),
    level=2,
    extra_files=("data-u-0.parquet.index",),
    delete_row_count=1,
    embedded_file_index=b"index",
    file_source=1,
    value_stats_cols=("a", "b"),
    external_path="file:///elsewhere/data-u-0.parquet",
    first_row_id=7,
    write_cols=("a",),
    write_cols_sequences=(1, 2),
)
TRAILING = (
    "delete_row_count",
    "embedded_file_index",
    "file_source",
    "value_stats_cols",
    "external_path",
    "first_row_id",
    "write_cols",
    "write_cols_sequences",
)
VECTORS = IndexManifestEntry(
    partition=EMPTY_ROW,
    bucket=0,
    index_type=DELETION_VECTORS,
    file_name="index-u-0",
    file_size=45,
    row_count=1,
    ranges=(DeletionVectorRange("data-u-0.parquet", 1, 24, None),),
)


def rename_records(schema: dict[str, Any], style: str) -> None:
    """Record names as another writer chooses them; readers must ignore them."""
    if style == "java":
        return
    schema.update(name="ManifestEntry")
    for field in schema["fields"]:
        for part in field["type"] if isinstance(field["type"], list) else [field["type"]]:
            if isinstance(part, dict) and part.get("type") == "record":
                part["name"] = f"Other{field['name']}"


FUTURE = {"name": "_FUTURE", "type": ["null", "long"], "default": None}
EVERY_CODEC = pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
EVERY_WRITER = pytest.mark.parametrize("style", ["java", "pypaimon"])
ENTRY = ManifestEntry(FileKind.ADD, EMPTY_ROW, 3, 4, FULL_FILE)
OTHER_ENTRY = replace(ENTRY, kind=FileKind.DELETE, bucket=1, file=FILE)


@EVERY_CODEC
@EVERY_WRITER
@pytest.mark.parametrize("kept", range(13, 22))  # of _FILE: 0.8 and before … now
def test_manifests_of_any_age_codec_and_writer_are_read(codec, style, kept):
    def shorten(schema: Any, records: Any) -> None:
        rename_records(schema, style)
        file = schema["fields"][-1]["type"]
        file["fields"] = [*file["fields"][:kept], dict(FUTURE)]
        schema["fields"].append({**FUTURE, "type": "string"})
        schema["fields"][-1].pop("default")
        for record in records:
            record["_FUTURE"] = "?"

    storage = memory()
    write_manifest(storage, LAYOUT, "m", [ENTRY, OTHER_ENTRY], TableOptions())
    content = reshaped(storage.read(LAYOUT.manifest("m")), shorten, codec)
    absent = dict.fromkeys(TRAILING[kept - 13 :])
    expected = [
        replace(ENTRY, file=replace(FULL_FILE, **absent)),
        replace(OTHER_ENTRY, file=replace(FILE, **absent)),
    ]
    assert entries_in(memory(m=content), LAYOUT, "m") == expected
    assert decode_manifest_by_record(content, "m") == expected, "by the file's own schema"


@EVERY_CODEC
@EVERY_WRITER
@pytest.mark.parametrize("kept", range(7, 14))  # its version and fields 0 … 11
def test_manifest_lists_of_any_age_codec_and_writer_are_read(codec, style, kept):
    def shorten(schema: Any, records: Any) -> None:
        rename_records(schema, style)
        schema["fields"] = [*schema["fields"][:kept], dict(FUTURE)]

    summary = summarise("m", 10, [ENTRY, OTHER_ENTRY])
    manifest = replace(summary, min_row_id=5, max_row_id=9, num_added_files=1)
    storage = memory()
    write_manifest_list(storage, LAYOUT, "l", [manifest], TableOptions())
    content = reshaped(storage.read(LAYOUT.manifest("l")), shorten, codec)
    names = ("min_bucket", "max_bucket", "min_level", "max_level", "min_row_id", "max_row_id")
    expected = replace(manifest, **dict.fromkeys(names[kept - 7 :]))
    assert read_manifest_list(memory(l=content), LAYOUT, "l") == [expected]


@EVERY_CODEC
@EVERY_WRITER
@pytest.mark.parametrize("has_nullable_items", [True, False])
def test_index_manifests_of_any_codec_and_writer_are_read(codec, style, has_nullable_items):
    def change(schema: Any, records: Any) -> None:
        by_name = {field["name"]: field for field in schema["fields"]}
        items = by_name["_DELETIONS_VECTORS_RANGES"]["type"][1]
        if not has_nullable_items:
            [items["items"]] = [part for part in items["items"] if part != "null"]
        rename_records(schema, style)
        schema["fields"].append(dict(FUTURE))

    storage = memory()
    write_index_manifest(storage, LAYOUT, "i", [VECTORS], TableOptions())
    content = reshaped(storage.read(LAYOUT.manifest("i")), change, codec)
    assert read_index_manifest(memory(i=content), LAYOUT, "i") == [VECTORS]


def test_a_version_other_than_2_2_and_1_is_rejected():
    entry = ManifestEntry(FileKind.ADD, EMPTY_ROW, 0, -1, FILE)
    storage, options = memory(), TableOptions()
    write_manifest(storage, LAYOUT, "manifest", [entry], options)
    write_manifest_list(storage, LAYOUT, "list", [summarise("m", 10, [entry])], options)
    write_index_manifest(storage, LAYOUT, "index", [VECTORS], options)

    def read_by_record(storage: MemoryStorage, layout: TableLayout, name: str) -> Any:
        return decode_manifest_by_record(storage.read(layout.manifest(name)), name)

    for name, supported, read in [
        ("list", 2, read_manifest_list),
        ("manifest", 2, entries_in),
        ("manifest", 2, read_by_record),
        ("index", 1, read_index_manifest),
    ]:
        original = storage.read(LAYOUT.manifest(name))
        for version in range(-1, 5):

            def change(schema: Any, records: Any, version: int = version) -> None:
                records[-1]["_VERSION"] = version

            copy = memory(**{name: reshaped(original, change)})
            if version == supported:
                assert read(copy, LAYOUT, name), f"{name} of version {version}"
            else:
                with pytest.raises(lake.CorruptTableError, match=f"{name}.*version {version}"):
                    read(copy, LAYOUT, name)


def test_a_delete_meets_its_add_by_seven_parts_in_any_order_of_manifests():
    plain = ManifestEntry(FileKind.ADD, EMPTY_ROW, 0, -1, FILE)
    day = frame_row(encode_row((1,), [parse_type("INT")]), 1)
    others = {
        "partition": replace(plain, partition=day),
        "bucket": replace(plain, bucket=1),
        "level": replace(plain, file=replace(FILE, level=1)),
        "name": replace(plain, file=replace(FILE, file_name="data-u-1.parquet")),
        "extra files": replace(plain, file=replace(FILE, extra_files=("x.index",))),
        "embedded index": replace(plain, file=replace(FILE, embedded_file_index=b"i")),
        "external path": replace(plain, file=replace(FILE, external_path="file:///x")),
    }

    def left(*manifests: list[ManifestEntry]) -> list[ManifestEntry]:
        """Through files, columns and objects alike."""
        storage = memory()
        names = [f"m{number}" for number in range(len(manifests))]
        for name, entries in zip(names, manifests, strict=True):
            write_manifest(storage, LAYOUT, name, entries, TableOptions())
        entries = [entry for name in names for entry in entries_in(storage, LAYOUT, name)]
        columns = read_manifests(storage, LAYOUT, names)
        assert columns.entries(live_rows(columns, "t")) == live_files(entries, "t")
        return live_files(entries, "t")

    def gone(entry: ManifestEntry) -> ManifestEntry:
        return replace(entry, kind=FileKind.DELETE)

    for part, other in others.items():
        assert left([plain], [other], [gone(plain)]) == [other], f"another {part} is another file"
        assert left([plain, other, gone(other)]) == [plain], f"another {part} is another file"
    upgraded = others["level"]
    story = [plain, gone(plain), upgraded, others["name"]]
    for order in permutations(story):
        if order.index(plain) < order.index(gone(plain)):
            expected = {upgraded.identity, others["name"].identity}
            for manifests in ([[entry] for entry in order], [list(order[:2]), list(order[2:])]):
                found = {entry.identity for entry in left(*manifests)}
                assert found == expected, f"order {[story.index(entry) for entry in order]}"
    for wrong in ([[gone(plain)]], [[plain], [plain]], [[plain], [gone(upgraded)]]):
        with pytest.raises(lake.CorruptTableError):
            left(*wrong)
