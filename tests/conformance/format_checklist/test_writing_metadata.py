"""The writing half of the format's conformance checklist (section 11): its metadata.

Independent decoders (json, fastavro, pyarrow, struct), the values of the specification and the
golden tables check the bytes. ``tests/interop/test_checklist_round_trip.py`` has the last line, the
round trip through pypaimon.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import SYSTEM
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.vector_record import VectorForm
from lakeformat.paimon.index.combination import VectorFiles, combine
from lakeformat.paimon.index.deletion_vector_file import encode_deletion_vectors
from lakeformat.paimon.metadata.index_manifest import (
    DELETION_VECTORS,
    HASH,
    GlobalIndexMeta,
    IndexManifestEntry,
    write_index_manifest,
)
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.statistics import TableStatistics, write_statistics
from lakeformat.paimon.read.plan import plan_files
from tests.conformance.format_checklist.keyed_table import KeyedTable

KEYED_COLUMNS = (("k", "INT NOT NULL"), ("v", "STRING"))


def new_catalog(folder: Path, **environment: Any) -> lake.Catalog:
    catalog = lake.open_catalog(str(folder), environment=replace(SYSTEM, **environment))
    catalog.create_database("shop")
    return catalog


def new_table(folder: Path, *columns: tuple[str, str], **options: str) -> lake.Table:
    texts = {key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}
    named = columns or [("id", "BIGINT")]
    return new_catalog(folder).create_table("shop.t", named, options=texts)


def members(path: Path | str) -> dict[str, Any]:
    found = json.loads(Path(path).read_bytes())
    assert isinstance(found, dict)
    return found


def avro(path: Path | str) -> tuple[dict[str, Any], list[Any], str]:
    """Schema, records and codec, by fastavro."""
    with Path(path).open("rb") as stream:
        reader = fastavro.reader(stream)
        return reader.writer_schema, list(reader), reader.metadata["avro.codec"]


def latest(table: lake.Table) -> Snapshot:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return snapshot


def nested_ids(value: Any) -> Iterator[int]:
    """Every ``id`` of a schema file, wherever it is."""
    if isinstance(value, dict):
        if "id" in value and "name" in value:
            yield value["id"]
        for part in value.values():
            yield from nested_ids(part)
    elif isinstance(value, list):
        for part in value:
            yield from nested_ids(part)


HASHES = IndexManifestEntry(
    partition=EMPTY_ROW,
    bucket=1,
    index_type=HASH,
    file_name="index-u-0",
    file_size=12,
    row_count=3,
)


def test_schemas_number_nested_fields_keep_keys_not_null_and_name_no_absent_comment(tmp_path):
    catalog = new_catalog(tmp_path)
    columns = [
        ("a", "INT"),
        ("r", "ROW<x INT, y ARRAY<ROW<z INT>>>"),
        ("m", "MAP<INT, ROW<w INT>>"),
    ]
    table = catalog.create_table("shop.t", columns)
    schema = table._handle.layout.schema
    first = members(schema(0))
    assert [column["id"] for column in first["fields"]] == [0, 1, 2]
    assert sorted(nested_ids(first["fields"])) == [*range(7)]
    assert first["highestFieldId"] == 6
    catalog.alter_table("shop.t", lake.drop_column("m"))
    assert members(schema(1))["highestFieldId"] == 6, "ids of dropped columns stay taken"
    catalog.alter_table(
        "shop.t", lake.add_column("m", "ROW<u INT>"), lake.add_column(("r", "v"), "INT")
    )
    third = members(schema(2))
    assert sorted(nested_ids(third["fields"])) == [0, 1, 3, 4, 5, 7, 8, 9]
    assert third["highestFieldId"] == 9
    for number in range(3):
        assert "comment" not in members(schema(number))
        assert "description" not in json.dumps(members(schema(number)))
    commented = catalog.alter_table("shop.t", lake.update_comment("why"))
    assert members(schema(3))["comment"] == "why"
    catalog.alter_table("shop.t", lake.update_comment(None))
    assert "comment" not in members(schema(4))
    assert commented.schema.comment == "why"

    keyed = KeyedTable(str(tmp_path / "shop.db" / "keyed"), KEYED_COLUMNS, ["k"], {"bucket": "1"})
    with pytest.raises(lake.InvalidRequestError):
        catalog.alter_table("shop.keyed", lake.update_column_nullability("k", nullable=True))
    catalog.alter_table("shop.keyed", lake.add_column("more", "INT"))
    altered = members(keyed.layout.schema(1))
    assert (altered["primaryKeys"], altered["fields"][0]["type"]) == (["k"], "INT NOT NULL")


def test_schemas_and_snapshots_are_published_atomically_in_turn_and_hints_follow(tmp_path):
    catalog = new_catalog(tmp_path)
    options = {"commit.max-retries": "100", "commit.min-retry-wait": "1 ms"}
    table = catalog.create_table("shop.t", [("id", "BIGINT")], options=options)
    layout = table._handle.layout

    def work(number: int) -> None:
        catalog.alter_table("shop.t", lake.add_column(f"c{number}", "INT"))
        for turn in range(4):
            table.write(pa.table({"id": [4 * number + turn]}))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    names = sorted(path.name for path in Path(layout.schema_directory).iterdir())
    assert names == [f"schema-{number}" for number in range(5)], "and nothing temporary is left"
    assert {column["name"] for column in members(layout.schema(4))["fields"]} == {
        "id",
        *(f"c{number}" for number in range(4)),
    }
    assert [snapshot.id for snapshot in table.snapshots()] == [*range(1, 17)]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [*range(16)]

    Path(layout.earliest_hint).unlink()
    table.write(pa.table({"id": [16]}))
    assert Path(layout.latest_hint).read_bytes() == b"17"
    assert Path(layout.earliest_hint).read_bytes() == b"1", "written again when it is missing"
    Path(layout.earliest_hint).write_bytes(b"5")
    table.write(pa.table({"id": [17]}))
    assert Path(layout.earliest_hint).read_bytes() == b"5", "left alone when it is there"


def test_a_snapshot_has_both_lists_with_sizes_true_counts_and_what_it_inherits(tmp_path):
    table = new_table(tmp_path)
    layout = table._handle.layout
    for count in (3, 2):
        table.write(pa.table({"id": range(count)}))
    for snapshot in table.snapshots():
        stored = members(layout.snapshot(snapshot.id))
        for name in ("baseManifestList", "deltaManifestList"):
            size = Path(layout.manifest(stored[name])).stat().st_size
            assert stored[f"{name}Size"] == size, f"{name} of snapshot {snapshot.id}"
        entries = plan_files(table._handle, snapshot)
        assert stored["totalRecordCount"] == sum(entry.file.row_count for entry in entries)
        assert stored["nextRowId"] == 0
        assert not {"watermark", "statistics", "properties", "indexManifest"} & stored.keys()
    assert [snapshot.delta_record_count for snapshot in table.snapshots()] == [3, 2]
    _, base, _ = avro(layout.manifest(table.snapshots()[0].base_manifest_list))
    assert base == [], "the first base list is there, and empty"

    head = latest(table)
    storage = table._handle.storage
    write_index_manifest(storage, layout, "index-manifest-u-0", [], table.options)
    write_statistics(storage, layout, "stat-u-0", TableStatistics(head.id, head.schema_id))
    inherited = {
        "watermark": 1_000,
        "statistics": "stat-u-0",
        "index_manifest": "index-manifest-u-0",
        "next_row_id": 77,
    }
    Path(layout.snapshot(head.id)).write_bytes(replace(head, **inherited).to_json())
    table.write(pa.table({"id": [9]}), watermark=500, properties={"job": "ingest"})
    third = latest(table)
    assert {name: getattr(third, name) for name in inherited} == inherited
    assert members(layout.snapshot(3))["properties"] == {"job": "ingest"}
    table.write(pa.table({"id": [10]}), watermark=2_000)
    assert latest(table).watermark == 2_000, "it only rises"
    # As in Java, properties are those of the commit: an append takes none over from its head.
    assert "properties" not in members(layout.snapshot(4)), "null rather than empty"
    new = lake.open_catalog(str(tmp_path)).alter_table("shop.t", lake.add_column("x", "INT"))
    new.write(pa.table({"id": [11], "x": [1]}))
    assert latest(new).statistics is None, "statistics are of one schema"
    assert latest(new).total_record_count == 3 + 2 + 1 + 1 + 1


STATS = "bytes _MIN_VALUES, bytes _MAX_VALUES, array<long?>? _NULL_COUNTS"
MANIFEST_LIST = (
    "int _VERSION, string _FILE_NAME, long _FILE_SIZE, long _NUM_ADDED_FILES, "
    f"long _NUM_DELETED_FILES, <{STATS}> _PARTITION_STATS, long _SCHEMA_ID, int? _MIN_BUCKET, "
    "int? _MAX_BUCKET, int? _MIN_LEVEL, int? _MAX_LEVEL, long? _MIN_ROW_ID, long? _MAX_ROW_ID"
)
DATA_FILE = (
    "string _FILE_NAME, long _FILE_SIZE, long _ROW_COUNT, bytes _MIN_KEY, bytes _MAX_KEY, "
    f"<{STATS}> _KEY_STATS, <{STATS}> _VALUE_STATS, long _MIN_SEQUENCE_NUMBER, "
    "long _MAX_SEQUENCE_NUMBER, long _SCHEMA_ID, int _LEVEL, array<string> _EXTRA_FILES, "
    "long:timestamp-millis? _CREATION_TIME, long? _DELETE_ROW_COUNT, bytes? _EMBEDDED_FILE_INDEX, "
    "int? _FILE_SOURCE, array<string>? _VALUE_STATS_COLS, string? _EXTERNAL_PATH, "
    "long? _FIRST_ROW_ID, array<string>? _WRITE_COLS, array<long>? _WRITE_COLS_SEQUENCES"
)
MANIFEST = (
    "int _VERSION, int _KIND, bytes _PARTITION, int _BUCKET, int _TOTAL_BUCKETS, "
    f"<{DATA_FILE}> _FILE"
)
RANGE = "string f0, int f1, int f2, long? _CARDINALITY"
GLOBAL = (
    "long _ROW_RANGE_START, long _ROW_RANGE_END, int _INDEX_FIELD_ID, "
    "array<int>? _EXTRA_FIELD_IDS, bytes? _INDEX_META, bytes? _SOURCE_META"
)
INDEX_MANIFEST = (
    "int _VERSION, int _KIND, bytes _PARTITION, int _BUCKET, string _INDEX_TYPE, "
    "string _FILE_NAME, long _FILE_SIZE, long _ROW_COUNT, "
    f"array<<{RANGE}>?>? _DELETIONS_VECTORS_RANGES, string? _EXTERNAL_PATH, "
    f"<{GLOBAL}>? _GLOBAL_INDEX"
)


def declared(kind: Any, named: dict[str, Any]) -> str:
    """An Avro type in the notation of section 4; a nullable one (``?``) must have null first."""
    if isinstance(kind, list):
        assert kind[0] == "null"
        assert len(kind) == 2
        return f"{declared(kind[1], named)}?"
    if isinstance(kind, str):
        return declared(named[kind], named) if kind in named else kind
    if kind["type"] == "array":
        return f"array<{declared(kind['items'], named)}>"
    if kind["type"] != "record":
        return f"{kind['type']}:{kind['logicalType']}" if "logicalType" in kind else kind["type"]
    named[kind["name"]] = kind
    parts = []
    for column in kind["fields"]:
        parts.append(f"{declared(column['type'], named)} {column['name']}")
        is_nullable = parts[-1].split(" ")[-2].endswith("?")
        assert ("default" in column) is is_nullable, column["name"]
        assert column.get("default") is None, column["name"]
    return f"<{', '.join(parts)}>"


def test_avro_manifests_have_the_fields_nullability_codec_and_frames_of_the_format(tmp_path):
    keyed = KeyedTable(
        str(tmp_path / "t"),
        (("p", "INT NOT NULL"), *KEYED_COLUMNS),
        ["k"],
        {"bucket": "2"},
        partitions=["p"],
    )
    row = {"p": 5, "k": 1, "v": "v1"}
    snapshot = keyed.commit(keyed.write([row], partition=[5], bucket=1), indexes=[HASHES])
    path = keyed.layout.manifest
    found = {name: avro(path(name)) for name in (snapshot.delta_manifest_list,)}
    [list_schema, [listed], codec] = found[snapshot.delta_manifest_list]
    manifest_schema, [entry], manifest_codec = avro(path(listed["_FILE_NAME"]))
    assert snapshot.index_manifest is not None
    index_schema, [index], index_codec = avro(path(snapshot.index_manifest))
    for name, schema, expected in (
        ("manifest list", list_schema, MANIFEST_LIST),
        ("manifest", manifest_schema, MANIFEST),
        ("index manifest", index_schema, INDEX_MANIFEST),
    ):
        assert declared(schema, {}) == f"<{expected}>", name
    assert {codec, manifest_codec, index_codec} == {"zstandard"}
    assert (listed["_VERSION"], entry["_VERSION"], index["_VERSION"]) == (2, 2, 1)
    one, five = bytes.fromhex("0100000000000000"), bytes.fromhex("0500000000000000")
    header = bytes.fromhex("00000001") + bytes(8)  # the arity is big endian, the row little
    file = entry["_FILE"]
    assert entry["_PARTITION"] == header + five
    assert file["_MIN_KEY"] == file["_MAX_KEY"] == header + one
    assert file["_KEY_STATS"]["_MIN_VALUES"] == header + one
    assert file["_VALUE_STATS"]["_MAX_VALUES"][:4] == bytes.fromhex("00000003")
    assert listed["_PARTITION_STATS"] == {
        "_MIN_VALUES": header + five,
        "_MAX_VALUES": header + five,
        "_NULL_COUNTS": [0],
    }
    assert (listed["_MIN_BUCKET"], listed["_MAX_BUCKET"], listed["_MAX_LEVEL"]) == (1, 1, 0)


def test_entries_record_buckets_source_schema_local_creation_time_and_extra_files(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        instant = datetime(2024, 1, 1, 20, 0, 0, 123_000, UTC)
        catalog = new_catalog(tmp_path, now_millis=lambda: int(instant.timestamp() * 1000))
        catalog.create_table("shop.t", [("id", "BIGINT")])
        table = catalog.alter_table("shop.t", lake.add_column("x", "INT"))
        table.write(pa.table({"id": [1], "x": [2]}))
    finally:
        monkeypatch.undo()
        time.tzset()
    path = table._handle.layout.manifest
    _, [listed], _ = avro(path(latest(table).delta_manifest_list))
    schema, [entry], _ = avro(path(listed["_FILE_NAME"]))
    file = entry["_FILE"]
    assert (entry["_BUCKET"], entry["_TOTAL_BUCKETS"]) == (0, -1)
    assert (file["_FILE_SOURCE"], file["_SCHEMA_ID"], listed["_SCHEMA_ID"]) == (0, 1, 1)
    wall_clock = datetime(2024, 1, 2, 1, 30, 0, 123_000, UTC)
    assert file["_CREATION_TIME"] == wall_clock, "the local clock, as if it were UTC"
    assert file["_EXTRA_FILES"] == []
    by_name = {column["name"]: column for column in schema["fields"][-1]["type"]["fields"]}
    assert by_name["_EXTRA_FILES"]["type"] == {"type": "array", "items": "string"}
    assert (file["_DELETE_ROW_COUNT"], file["_MIN_KEY"]) == (0, EMPTY_ROW)

    keyed = KeyedTable(str(tmp_path / "keyed"), KEYED_COLUMNS, ["k"], {"bucket": "4"})
    snapshot = keyed.commit(keyed.write([{"k": 1, "v": None}], bucket=3))
    _, [listed], _ = avro(keyed.layout.manifest(snapshot.delta_manifest_list))
    _, [entry], _ = avro(keyed.layout.manifest(listed["_FILE_NAME"]))
    assert (entry["_BUCKET"], entry["_TOTAL_BUCKETS"]) == (3, 4)
    assert (entry["_FILE"]["_EXTRA_FILES"], entry["_FILE"]["_FILE_SOURCE"]) == ([], 0)
    assert entry["_FILE"]["_CREATION_TIME"] == datetime(2024, 1, 1, tzinfo=UTC)


def test_an_index_manifest_is_written_whole_and_holds_only_adds(tmp_path):
    keyed = KeyedTable(str(tmp_path / "t"), KEYED_COLUMNS, ["k"], {"bucket": "-1"})
    meta = GlobalIndexMeta(0, 99, 4, (5,), b"meta", b"source")
    covering = replace(HASHES, index_type="btree", file_name="global", global_index=meta)
    content, ranges = encode_deletion_vectors({"f": DeletionVector.of([1])}, VectorForm.BITMAP32)
    vectors = replace(
        HASHES,
        index_type=DELETION_VECTORS,
        file_name="vectors",
        file_size=len(content),
        row_count=1,
        ranges=ranges,
    )

    def stored(snapshot: Snapshot) -> list[dict[str, Any]]:
        assert snapshot.index_manifest is not None
        return avro(keyed.layout.manifest(snapshot.index_manifest))[1]

    state = [HASHES, covering, vectors, replace(HASHES, bucket=2, file_name="other")]
    first = keyed.commit([], indexes=state)
    changed = combine(
        state, removed=[vectors], added=[replace(HASHES, file_name="newer", row_count=4)]
    )
    second = keyed.commit([], indexes=changed)
    assert second.index_manifest != first.index_manifest
    names = [record["_FILE_NAME"] for record in stored(second)]
    assert names == ["global", "other", "newer"], "untouched entries are written again"
    assert {record["_KIND"] for record in (*stored(first), *stored(second))} == {0}
    by_name = {record["_FILE_NAME"]: record for record in stored(first)}
    carried = next(record for record in stored(second) if record["_FILE_NAME"] == "global")
    assert carried == by_name["global"], "to the byte, global indexes too"
    third = keyed.commit(keyed.write([{"k": 1, "v": None}], total_buckets=-1))
    assert third.index_manifest == second.index_manifest, "unchanged: the same file again"
    unaware = combine(
        [vectors],
        added=[
            replace(vectors, file_name="more", ranges=(replace(ranges[0], data_file_name="g"),))
        ],
        vector_files=VectorFiles.ANY_NUMBER,
    )
    assert [entry.file_name for entry in unaware] == ["vectors", "more"]
