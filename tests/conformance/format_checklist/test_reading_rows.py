"""The reading half of the format's conformance checklist (section 11), data files to casts.

Each line is a test. It reads real bytes: of other writers where a golden table shows the case,
else of tables put together here from the library's parts.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.environment import SYSTEM
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.vector_record import VectorForm
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.index.deletion_vector_file import encode_deletion_vectors
from lakeformat.paimon.index.file_index import (
    EMPTY,
    BloomFilter,
    decode_file_index,
    encode_file_index,
    open_column_index,
    read_file_index,
)
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.changelog_directory import (
    changelog_ids,
    read_changelog,
)
from lakeformat.paimon.metadata.consumer import read_consumers
from lakeformat.paimon.metadata.index_manifest import (
    DELETION_VECTORS,
    IndexManifestEntry,
    write_index_manifest,
)
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.manifest_list import read_manifest_list
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.metadata.tag import read_tag, read_tags
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.read.plan import plan_files
from lakeformat.storage import LocalStorage
from lakeformat.types.type_text import parse_type
from tests.conformance.format_checklist.keyed_table import (
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    KeyedTable,
)
from tests.golden.tables import HOW_TO_UNSKIP, GoldenTable, golden_tables
from tests.golden.values import assert_same_rows, rows_of
from tests.manifest_entries import entries_in
from tests.rewriting import rewrite_entries

TABLES = {table.name: table for table in golden_tables()}
needs_golden_tables = pytest.mark.skipif(not TABLES, reason=HOW_TO_UNSKIP)
STORAGE = LocalStorage()


def new_table(folder: Path, *columns: tuple[str, str], **options: str) -> lake.Table:
    catalog = lake.open_catalog(str(folder), options={"external-roots": str(folder.parent)})
    catalog.create_database("shop", exist_ok=True)
    texts = {key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}
    return catalog.create_table("shop.t", columns or [("id", "BIGINT")], options=texts)


def handle_of(golden: GoldenTable) -> TableHandle:
    return lake.open_table(golden.location)._handle


def live(table: lake.Table) -> list[ManifestEntry]:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return plan_files(table._handle, snapshot)


def rows_in(golden: GoldenTable, **scan: Any) -> list[dict[str, Any]]:
    return rows_of(lake.open_table(golden.location).scan(**scan).to_arrow())


def physical_types(golden: GoldenTable) -> dict[str, str]:
    """Return the physical types of the columns of one Parquet file."""
    [path, *_] = Path(golden.location).rglob("data-*.parquet")
    schema = pq.ParquetFile(path).schema
    return {
        schema.column(n).path.split(".")[0]: schema.column(n).physical_type
        for n in range(len(schema))
    }


@needs_golden_tables
def test_data_files_of_both_writers_in_every_physical_form_and_place_are_read(tmp_path):
    for name in (
        *(f"{writer}/all_types_{kind}" for writer in ("format", "format-java") for kind in KINDS),
        "format/odd_types_parquet",
        "format-java/special_types",
        "format-java/thin_mode",
        "format-java/changelog_input",
    ):
        assert_same_rows(rows_in(TABLES[name]), TABLES[name].rows())
    java, python = (
        physical_types(TABLES[f"{writer}/all_types_parquet"])
        for writer in ("format-java", "format")
    )
    decimals = ("c_d9", "c_d18", "c_d38")
    fixed = "FIXED_LEN_BYTE_ARRAY"
    assert [java[column] for column in decimals] == ["INT32", "INT64", fixed]
    assert [python[column] for column in decimals] == [fixed] * 3
    special = physical_types(TABLES["format-java/special_types"])
    assert [special[column] for column in ("ts9", "ltz9", "bin")] == ["INT96"] * 2 + ["BYTE_ARRAY"]
    odd = physical_types(TABLES["format/odd_types_parquet"])
    assert [odd[column] for column in ("c_ts9", "c_fix")] == ["INT64", fixed]
    assert not any(c.startswith("_KEY_") for c in physical_types(TABLES["format-java/thin_mode"]))
    suffixes = {
        entry.file.file_name.partition(".")[2]
        for entry in live(lake.open_table(TABLES["format-java/changelog_input"].location))
    }
    assert suffixes == {"zst.parquet"}

    for kind in KINDS:
        outside = tmp_path / f"elsewhere {kind}"
        named = {"data-file__external-paths": f"file:{outside}"}
        table = new_table(tmp_path / kind, file__format=kind, **named)
        table.write(pa.table({"id": [1, 2]}))
        [entry] = live(table)
        handle = table._handle
        here = Path(handle.layout.data_file(0, entry.file.file_name))
        there = outside / "bucket-0" / here.name
        there.parent.mkdir(parents=True)
        here.rename(there)
        point_to(table, f"file:{there}")  # as Java spells it, with nothing escaped
        table = lake.open_table(table.location, external_roots=[str(outside)])
        assert table.scan().to_arrow()["id"].to_pylist() == [1, 2], f"external path of {kind}"


KINDS = ("parquet", "orc", "avro")


def point_to(table: lake.Table, address: str) -> None:
    """Rewrite the table's only manifest so that its file has an external path."""
    rewrite_entries(table, lambda e: replace(e, file=replace(e.file, external_path=address)))


COLUMNS = (("k", "INT NOT NULL"), ("v", "STRING"))


def rows(*triples: tuple[int, str | None, int]) -> list[dict[str, Any]]:
    return [{"k": key, "v": value, "kind": kind} for key, value, kind in triples]


@needs_golden_tables
def test_rows_are_merged_by_sequence_number_and_hidden_where_they_wait(tmp_path):
    for name in ("pk_fixed_bucket", "pk_deletes", "pk_dynamic_bucket", "pk_postpone_bucket"):
        golden = TABLES[f"format/{name}"]
        assert_same_rows(rows_in(golden), golden.rows())
    postponed = live(lake.open_table(TABLES["format/pk_postpone_bucket"].location))
    assert [entry.bucket for entry in postponed] == [POSTPONE_BUCKET], "its rows are there"

    merged = KeyedTable(str(tmp_path / "merged"), COLUMNS, ["k"], {"bucket": "1"})
    merged.commit(
        [
            *merged.write(rows((1, "old", INSERT), (2, "b", INSERT), (3, "c", INSERT)), level=5),
            *merged.write(rows((4, "d", INSERT), (5, "e", INSERT)), level=5),
        ]
    )
    newer = merged.write(rows((1, "new", UPDATE_AFTER), (2, None, DELETE), (6, "f", INSERT)))
    newest = merged.write(rows((3, "c", UPDATE_BEFORE), (5, "e", DELETE)))
    again = merged.write(rows((5, "back", INSERT)))
    merged.commit([*again, *newest, *newer])  # the number decides, not the order of the files
    expected = [{"k": 1, "v": "new"}, {"k": 4, "v": "d"}, {"k": 5, "v": "back"}]
    assert_same_rows(rows_of(merged.open().scan().to_arrow()), [*expected, {"k": 6, "v": "f"}])

    uncounted = KeyedTable(str(tmp_path / "uncounted"), COLUMNS, ["k"], {"bucket": "1"})
    [entry] = uncounted.write(rows((1, "a", INSERT), (2, "b", DELETE)), level=5)
    uncounted.commit([replace(entry, file=replace(entry.file, delete_row_count=None))])
    found = uncounted.open().scan().to_arrow()["v"].to_pylist()
    assert found == ["a"], "older writers did not count deleted rows"

    for merge_on_read, visible in (("false", ["a", "b"]), ("true", ["a", "changed", "c"])):
        options = {"bucket": "1", "deletion-vectors.enabled": "true"}
        options["deletion-vectors.merge-on-read"] = merge_on_read
        marked = KeyedTable(str(tmp_path / merge_on_read), COLUMNS, ["k"], options)
        marked.commit(marked.write(rows((1, "a", INSERT), (2, "b", INSERT)), level=5))
        marked.commit(marked.write(rows((2, "changed", INSERT), (3, "c", INSERT)), level=0))
        found = marked.open().scan().to_arrow()["v"].to_pylist()
        assert sorted(found) == sorted(visible), f"merge-on-read {merge_on_read}"


@needs_golden_tables
def test_deletion_vectors_of_both_forms_and_in_both_places_hide_their_rows(tmp_path):
    for name in ("format/deletion_vectors", "format-java/pk_dv_bitmap32", *BITMAP64):
        assert_same_rows(rows_in(TABLES[name]), TABLES[name].rows())
    gone = {0: range(10, 5_000), 1: [0, 3, 4_999], 2: [*range(0, 5_000, 2)]}
    left = [n for f in range(3) for n in range(5_000) if n not in set(gone[f])]
    for form in VectorForm:
        for place in ("index", "data"):
            for counted in (True, False):
                case = f"{form.value} beside {place} files, counted: {counted}"
                folder = tmp_path / case.replace(" ", "_")
                beside = "true" if place == "data" else "false"
                table = new_table(folder, index_file_in_data_file_dir=beside)
                for _ in range(3):
                    table.write(pa.table({"id": range(5_000)}))
                files = [entry.file.file_name for entry in live(table)]
                vectors = {files[f]: DeletionVector.of(gone[f]) for f in gone}
                content, ranges = encode_deletion_vectors(vectors, form)
                assert bytes.fromhex("3b30") in content, "a run container"
                if not counted:
                    ranges = tuple(replace(found, cardinality=None) for found in ranges)
                layout = table._handle.layout
                directory = (
                    layout.bucket_directory(0) if place == "data" else f"{layout.root}/index"
                )
                Path(directory).mkdir(exist_ok=True)
                Path(directory, "index-u-0").write_bytes(content)
                entry = IndexManifestEntry(
                    partition=EMPTY_ROW,
                    bucket=0,
                    index_type=DELETION_VECTORS,
                    file_name="index-u-0",
                    file_size=len(content),
                    row_count=len(ranges),
                    ranges=ranges,
                )
                name_index(table, entry, with_cardinality=counted)
                scan = table.scan()
                assert scan.to_arrow()["id"].to_pylist() == left, case
                assert scan.count() == len(left), case

    for bucket in (0, 2):
        marked = KeyedTable(
            str(tmp_path / f"bucket {bucket}"),
            COLUMNS,
            ["k"],
            {"bucket": "3", "deletion-vectors.enabled": "true"},
        )
        keys = rows((1, "a", INSERT), (2, "b", INSERT), (3, "c", INSERT))
        entries = [e for at in (0, 1, 2) for e in marked.write(keys, bucket=at, level=5)]
        [here] = [each for each in entries if each.bucket == bucket]
        content, ranges = encode_deletion_vectors(
            {here.file.file_name: DeletionVector.of([0, 2])}, VectorForm.BITMAP32
        )
        Path(marked.root, "index").mkdir()
        Path(marked.layout.index_file("index-u-0")).write_bytes(content)
        index = IndexManifestEntry(
            partition=EMPTY_ROW,
            bucket=bucket,
            index_type=DELETION_VECTORS,
            file_name="index-u-0",
            file_size=len(content),
            row_count=len(ranges),
            ranges=ranges,
        )
        marked.commit(entries, indexes=[index])
        expected = [v for at in (0, 1, 2) for v in (["b"] if at == bucket else ["a", "b", "c"])]
        assert marked.open().scan().to_arrow()["v"].to_pylist() == expected, f"bucket {bucket}"


BITMAP64 = ("format-java/pk_dv_bitmap64",)


def name_index(table: lake.Table, entry: IndexManifestEntry, *, with_cardinality: bool) -> None:
    """Give the latest snapshot an index manifest; older releases had no ``_CARDINALITY`` in it."""
    handle, snapshot = table._handle, table.latest_snapshot()
    assert snapshot is not None
    storage, layout = handle.storage, handle.layout
    write_index_manifest(storage, layout, "index-manifest-u-0", [entry], handle.options)
    path = Path(layout.manifest("index-manifest-u-0"))
    if not with_cardinality:
        with path.open("rb") as stream:
            reader = fastavro.reader(stream)
            schema, records = reader.writer_schema, list(reader)
        by_name = {column["name"]: column for column in schema["fields"]}
        [item] = [
            part
            for part in by_name["_DELETIONS_VECTORS_RANGES"]["type"][1]["items"]
            if part != "null"
        ]
        item["fields"] = [part for part in item["fields"] if part["name"] != "_CARDINALITY"]
        with path.open("wb") as stream:
            fastavro.writer(stream, schema, records)
    named = replace(snapshot, index_manifest="index-manifest-u-0")
    Path(layout.snapshot(snapshot.id)).write_bytes(named.to_json())


@needs_golden_tables
def test_file_indexes_of_every_type_are_found_embedded_and_beside_and_others_are_skipped():
    types_seen, versions = set(), set()
    for name in ("format-java/file_index", "format-java/file_index_embedded"):
        golden = TABLES[name]
        handle = handle_of(golden)
        [entry] = live(lake.open_table(golden.location))
        data = handle.layout.data_file(0, entry.file.file_name)
        if entry.file.embedded_file_index is not None:
            assert entry.file.extra_files == ()
            content = decode_file_index(entry.file.embedded_file_index, name)
        else:
            [side_car] = entry.file.extra_files
            assert side_car == f"{entry.file.file_name}.index"
            content = read_file_index(STORAGE, f"{data}.index")
        stored = pq.read_table(data, partitioning=None)
        kinds = {field.name: field.type for field in handle.schema.fields}
        for column, by_type in content.items():
            values = stored[column].to_pylist()
            for kind, body in by_type.items():
                types_seen.add(kind)
                if kind == "bitmap":
                    versions.add(body[0])
                index = open_column_index(kind, kinds[column], body, name)
                for value in set(values) - {None}:
                    if isinstance(index, BloomFilter):
                        assert index.may_contain(value), f"{kind} of {column}: {value!r}"
                    else:
                        found = [n for n, other in enumerate(values) if other == value]
                        assert [*index.equal_to(value)] == found, f"{kind} of {column}: {value!r}"
                if not isinstance(index, BloomFilter):
                    nulls = [n for n, other in enumerate(values) if other is None]
                    assert [*index.is_null()] == nulls, f"nulls of {kind} of {column}"
    assert types_seen == {"bloom-filter", "bitmap", "bsi", "range-bitmap"}
    assert versions == {1, 2}, "both versions of bitmap"
    odd = encode_file_index({"a": {"bitmap": None, "token-of-2030": b"?"}, "m[k]": {"bsi": None}})
    decoded = decode_file_index(odd, "odd")
    number = parse_type("INT")
    assert open_column_index("bitmap", number, decoded["a"]["bitmap"], "odd") is EMPTY
    assert open_column_index("bsi", number, decoded["m[k]"]["bsi"], "odd") is EMPTY
    assert open_column_index("token-of-2030", number, decoded["a"]["token-of-2030"], "odd") is None


@needs_golden_tables
def test_tags_branches_long_lived_changelogs_and_consumers_are_read():
    java, python = TABLES["format-java/changelog_input"], TABLES["format/tags_and_branches"]
    handle = handle_of(java)
    plain, retained = read_tags(handle.storage, handle.layout)
    assert (plain.create_time, plain.time_retained) == (None, None)
    assert retained.create_time is not None
    assert retained.time_retained == timedelta(days=1)
    assert plain.snapshot == retained.snapshot
    for golden, tag in ((java, plain.name), (python, "v1")):
        assert rows_in(golden, tag=tag), f"{golden.name} at tag {tag}"
    assert_same_rows(rows_in(python, tag="v1"), python.rows("tag_v1_rows"))

    for golden, branch in ((java, "br"), (python, "dev")):
        of_table = handle_of(golden)
        assert [found.name for found in branches(of_table.storage, of_table.layout)] == [branch]
        opened = lake.open_table(golden.location, branch=branch)
        under_branch = Path(golden.location, "branch", f"branch-{branch}")
        assert not (under_branch / "manifest").exists(), "its files lie under the table"
        tag = "t1" if golden is java else "v1"
        on_branch = read_tag(of_table.storage, of_table.layout.on_branch(branch), tag)
        assert opened.latest_snapshot() == on_branch.snapshot
        assert_same_rows(rows_of(opened.scan().to_arrow()), rows_in(golden, tag=tag))

    assert changelog_ids(handle.storage, handle.layout) == [1]
    changelog = read_changelog(handle.storage, handle.layout, 1)
    assert changelog == plain.snapshot, "the snapshot that expired"
    assert changelog.changelog_manifest_list is not None
    [manifest] = read_manifest_list(
        handle.storage, handle.layout, changelog.changelog_manifest_list
    )
    [entry] = entries_in(handle.storage, handle.layout, manifest.file_name)
    assert entry.file.file_name.startswith("changelog-")
    for golden, consumer, number in ((java, "me", 3), (python, "reader1", 2)):
        of_table = handle_of(golden)
        [found] = read_consumers(of_table.storage, of_table.layout, SYSTEM)
        assert (found.id, found.next_snapshot) == (consumer, number)


@needs_golden_tables
def test_old_files_are_read_by_field_id_through_renames_nested_rows_and_casts(tmp_path):
    evolved = TABLES["format/schema_evolved"]
    assert_same_rows(rows_in(evolved), evolved.rows())
    columns = [("a", "INT"), ("gone", "INT"), ("r", "ROW<x INT, y STRING>"), ("n", "DECIMAL(9, 2)")]
    for kind in KINDS:
        folder = tmp_path / kind
        table = new_table(folder, *columns, file__format=kind)
        row = {"a": 7, "gone": 8, "r": {"x": 1, "y": "2"}, "n": Decimal("1.25")}
        table.write(pa.Table.from_pylist([row], schema=table.schema.arrow_schema()))
        catalog = lake.open_catalog(str(folder), options={"external-roots": str(folder.parent)})
        catalog.alter_table(
            "shop.t",
            lake.drop_column("gone"),
            lake.rename_column("a", "renamed"),
            lake.update_column_type("renamed", "BIGINT"),
            lake.update_column_type("n", "STRING"),
            lake.add_column(("r", "z"), "DATE"),
            lake.rename_column(("r", "x"), "was_x"),
            lake.update_column_type(("r", "was_x"), "DOUBLE"),
            lake.drop_column(("r", "y")),
        )
        after = catalog.alter_table(
            "shop.t", lake.add_column("gone", "INT"), lake.add_column(("r", "y"), "STRING")
        )
        [found] = rows_of(after.scan().to_arrow())
        assert found == {
            "renamed": 7,
            "r": {"was_x": 1.0, "z": None, "y": None},
            "n": "1.25",
            "gone": None,
        }, kind
        dropped = read_schema(table._handle.storage, table._handle.layout, 0).fields[1]
        assert after.schema.fields[-1].id > dropped.id, "a name used again has a new id"
