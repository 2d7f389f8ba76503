"""Columns that cannot be read: other columns can, and metadata operations work."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.storage import open_storage
from tests.evolved_rows import DATA_EVOLUTION, EvolvedRows

COLUMNS = [("id", "INT"), ("name", "STRING")]
PEOPLE = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
VECTOR = {"type": "VECTOR", "element": "FLOAT", "length": 3}


def add_column(table: lake.Table, name: str, data_type: object) -> lake.Table:
    """Give a table a newer schema, as an engine that knows the type would."""
    storage, root = open_storage(table.location)
    schema = json.loads(storage.read(f"{root}/schema/schema-0"))
    schema["id"], schema["highestFieldId"] = 1, 2
    schema["fields"].insert(0, {"id": 2, "name": name, "type": data_type})
    storage.create(f"{root}/schema/schema-1", json.dumps(schema).encode())
    return lake.open_table(table.location)


@pytest.fixture
def people(catalog) -> EvolvedRows:
    people = EvolvedRows(catalog.create_table("shop.people", COLUMNS, options=DATA_EVOLUTION))
    people.append(PEOPLE)
    return people


class TestBlobs:
    """Blobs lie in files of their own, beside those with the other columns."""

    @pytest.fixture
    def table(self, people) -> lake.Table:
        [file] = people.prepare(PEOPLE).new_files
        table = add_column(people.table, "photo", "BLOB")
        name = file.file_name.replace(".parquet", ".blob")
        handle = table._handle
        handle.storage.create(handle.layout.data_file(0, name), b"BLOB")
        blobs = replace(
            file, file_name=name, file_size=4, schema_id=1, first_row_id=0, write_cols=("photo",)
        )
        table.commit([CommitMessage(bucket=0, new_files=(blobs,))])
        return table

    def test_the_other_columns_are_read(self, table):
        found = table.scan(columns=["id", "name"])
        assert found.to_arrow().to_pylist() == PEOPLE
        assert table.scan().count() == 2
        assert table.scan(columns=["name"], where="id = 2").to_arrow().to_pylist() == [
            {"name": "b"}
        ]

    @pytest.mark.parametrize("columns", [None, ["photo"], ["id", "photo"]])
    def test_the_blobs_are_refused_by_the_name_of_their_column(self, table, columns):
        with pytest.raises(
            lake.UnsupportedError, match=r"column 'photo': .* not read or write values of type BLO"
        ):
            table.scan(columns=columns).to_arrow()

    def test_changes_are_refused_without_advice_to_leave_out_the_column(self, table):
        with pytest.raises(lake.UnsupportedError, match=r"does not read: read .* another engine$"):
            table.changes(1, columns=["id"]).to_arrow()

    def test_work_on_metadata_is_done(self, table):
        table.tags.create("kept")
        table.expire_snapshots(retain_max=1, retain_min=1)
        table.remove_orphans(dry_run=False)
        assert table.health().files.files == 2
        assert table.scan(columns=["id"]).count() == 2
        assert any(place.suffix == ".blob" for place in _files(table))

    def test_it_is_not_compacted(self, table):
        with pytest.raises(lake.UnsupportedError, match=r"'data-evolution\.enabled'"):
            table.compact()

    def test_rows_are_not_written_without_their_blobs(self, table):
        with pytest.raises(lake.UnsupportedError, match=r"column 'photo'"):
            table.write(pa.table({"id": [3], "name": ["c"]}))


@pytest.mark.parametrize("data_type", ["BLOB", {"type": "ARRAY", "element": "BLOB"}])
def test_a_clone_does_not_lead_to_the_blob_packs_of_its_source(catalog, keyed_table, data_type):
    """Rows with a key name packs by their address, and no manifest does."""
    table = add_column(keyed_table([("id", "INT"), ("name", "STRING")]), "photo", data_type)
    with pytest.raises(lake.UnsupportedError, match=r"no manifest names .* of column 'photo'"):
        lake.clone_table(table, catalog, "shop.copy", full=True)
    assert catalog.list_tables("shop") == ["orders"]


class TestVectors:
    def test_the_other_columns_are_read_and_the_vectors_are_refused_by_name(self, people):
        table = add_column(people.table, "embedding", VECTOR)
        assert table.scan(columns=["id", "name"]).to_arrow().to_pylist() == PEOPLE
        with pytest.raises(lake.UnsupportedError, match=r"column 'embedding': .* type VECTOR"):
            table.scan().to_arrow()

    def test_a_vector_file_is_no_file_of_rows(self, people):
        [file] = people.prepare(PEOPLE).new_files
        table = add_column(people.table, "embedding", VECTOR)
        name = file.file_name.replace(".parquet", ".vector.lance")
        handle = table._handle
        handle.storage.create(handle.layout.data_file(0, name), b"x")
        vectors = replace(file, file_name=name, file_size=1, schema_id=1, first_row_id=0)
        vectors = replace(vectors, write_cols=("embedding",))
        table.commit([CommitMessage(bucket=0, new_files=(vectors,))])
        assert table.scan().count() == 2
        assert table.scan(columns=["name", "id"]).to_arrow()["id"].to_pylist() == [1, 2]


class TestTypesOfLaterVersions:
    @pytest.mark.parametrize(
        "data_type", ["QUATERNION(3) NOT NULL", {"type": "GRAPH", "nodes": "INT"}]
    )
    def test_a_table_with_such_a_column_is_refused_by_column_and_type(self, people, data_type):
        with pytest.raises(lake.UnsupportedError, match=r"'q' has type (QUATERNION\(3\)|GRAPH)"):
            add_column(people.table, "q", data_type)

    def test_what_is_no_type_at_all_is_damage(self, people):
        with pytest.raises(lake.CorruptTableError, match="not a type"):
            add_column(people.table, "q", "INT )")


class TestSharedShredding:
    """A MAP whose file keeps values of frequent keys in columns shared by several keys."""

    @pytest.fixture
    def table(self, catalog) -> lake.Table:
        table = catalog.create_table(
            "shop.tagged", [("id", "INT"), ("tags", "MAP<STRING, INT>")], options={"bucket": "-1"}
        )
        table.write(pa.table({"id": [1], "tags": [[("a", 1)]]}, schema=table.schema.arrow_schema()))
        [file] = [place for place in _files(table) if place.suffix == ".parquet"]
        stored = pa.struct(
            [
                ("__field_mapping", pa.list_(pa.int32())),
                ("__col_0", pa.int32()),
                ("__overflow", pa.map_(pa.int32(), pa.int32())),
            ]
        )
        value = {"__field_mapping": [0], "__col_0": 1, "__overflow": []}
        rows = pa.table({"id": pa.array([1], pa.int32()), "tags": pa.array([value], stored)})
        pq.write_table(rows, file)
        return table

    def test_the_other_columns_are_read(self, table):
        assert table.scan(columns=["id"]).to_arrow().to_pylist() == [{"id": 1}]

    def test_the_map_is_refused_by_name(self, table):
        with pytest.raises(lake.UnsupportedError, match=r"column 'tags' of .*shared-shredding"):
            table.scan().to_arrow()

    def test_a_compaction_is_refused_and_changes_nothing(self, table):
        table.write(pa.table({"id": [2], "tags": [[]]}, schema=table.schema.arrow_schema()))
        before = _files(table)
        with pytest.raises(lake.UnsupportedError, match=r"column 'tags' of .*shared-shredding"):
            table.compact()
        assert _files(table) == before

    def test_no_other_engine_is_let_read_its_files(self, table):
        """Spark would read the shared columns as they are."""
        layout = {"fields.tags.map.storage-layout": "shared-shredding"}
        storage, root = open_storage(table.location)
        schema = json.loads(storage.read(f"{root}/schema/schema-0"))
        schema["options"] |= layout
        storage.overwrite(f"{root}/schema/schema-0", json.dumps(schema).encode())
        table = lake.open_table(table.location)
        assert table.scan().plain_files().files == ()
        assert len(table.scan(columns=["id"]).plain_files().files) == 1


def _files(table: lake.Table) -> list[Path]:
    root = Path(table.location.removeprefix("file://"))
    return sorted(place for place in root.rglob("*") if place.is_file())
