"""Tables whose later files replace single columns: each column comes from its newest file."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.vector_record import VectorForm
from lakeformat.paimon.datafile import rolling_writer
from lakeformat.paimon.index.deletion_vector_file import encode_deletion_vectors
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.index_manifest import DELETION_VECTORS, IndexManifestEntry
from lakeformat.paimon.read.plan import plan_files
from tests.evolved_rows import DATA_EVOLUTION, EvolvedRows
from tests.golden.foreign import expected_of, unpack_foreign
from tests.rewriting import rewrite_entries
from tests.sampling import SEED

COLUMNS = [("id", "INT"), ("name", "STRING"), ("score", "DOUBLE")]


@pytest.fixture
def make(catalog):
    def make(columns=COLUMNS, **options: str) -> EvolvedRows:
        named = {name.replace("_", "-"): text for name, text in options.items()}
        created = catalog.create_table("shop.people", columns, options=DATA_EVOLUTION | named)
        return EvolvedRows(created)

    return make


def person(number: int, name: str = "old") -> dict[str, object]:
    return {"id": number, "name": f"{name} {number}", "score": number / 2}


def read(table: lake.Table, **asked) -> list[dict[str, object]]:
    found = table.scan(**asked)
    rows = found.to_arrow().to_pylist()
    assert found.count() == len(rows)
    return rows


def files_of(table: lake.Table) -> list[DataFileMeta]:
    snapshot = table.latest_snapshot()
    return [entry.file for entry in plan_files(table._handle, snapshot)]


class TestGolden:
    """A table of pypaimon whose second commit replaced all columns of all rows."""

    NAME = "data_evolution_all_columns"

    def test_updated_rows_are_read_once_and_with_their_new_values(self, tmp_path):
        table = lake.open_table(unpack_foreign(self.NAME, tmp_path))
        rows = [[*row.values()] for row in read(table)]
        assert rows == expected_of(self.NAME)["rows"]

    def test_an_old_value_is_not_found(self, tmp_path):
        table = lake.open_table(unpack_foreign(self.NAME, tmp_path))
        assert read(table, where="v = 10") == []
        assert read(table, where="v = 11") == [{"id": 1, "v": 11}]

    def test_the_older_snapshot_has_the_old_values(self, tmp_path):
        table = lake.open_table(unpack_foreign(self.NAME, tmp_path))
        assert [row["v"] for row in read(table, snapshot=1)] == [10, 20, 30]

    def test_rows_appended_here_get_the_next_ids(self, tmp_path):
        table = lake.open_table(unpack_foreign(self.NAME, tmp_path))
        table.write(pa.table({"id": [4], "v": [40]}))
        assert files_of(table)[-1].first_row_id == 3
        assert [row["v"] for row in read(table)] == [11, 21, 31, 40]


class TestColumns:
    """Each column has the value of the newest file that has it."""

    def test_a_file_of_one_column_replaces_that_column(self, make):
        people = make()
        people.append([person(1), person(2)])
        people.update(0, [{"name": "new 1"}, {"name": "new 2"}])
        assert read(people.table) == [
            {"id": 1, "name": "new 1", "score": 0.5},
            {"id": 2, "name": "new 2", "score": 1.0},
        ]

    def test_the_commit_that_came_last_wins_whatever_the_size_of_its_file(self, make):
        people = make()
        people.append([person(n) for n in range(50)])
        people.update(0, [{"name": f"b{n}"} for n in range(50)])
        people.update(0, [{"name": f"c{n}", "score": 1.5} for n in range(50)])
        assert read(people.table) == people.rows

    def test_large_files_of_one_write_do_not_outrank_a_later_update(self, make, monkeypatch):
        """Sequence numbers that count rows would be larger than that of any later snapshot."""
        monkeypatch.setattr(rolling_writer, "ROW_GROUP_ROWS", 100)
        people = make(target_file_size="1 kb")
        people.append([person(n) for n in range(300)])
        files = files_of(people.table)
        assert len(files) > 1
        assert {file.max_sequence_number for file in files} == {1}

    def test_columns_that_are_not_asked_for_are_not_read(self, make):
        people = make()
        people.append([person(1)])
        update = people.update(0, [{"name": "new"}])
        handle = people.table._handle
        handle.storage.delete(handle.layout.data_file(0, update.file_name))
        assert read(people.table, columns=["id", "score"]) == [{"id": 1, "score": 0.5}]
        with pytest.raises(lake.CorruptTableError, match=update.file_name):
            people.table.scan(columns=["name"]).to_arrow()

    def test_a_column_added_later_is_null_until_a_file_has_it(self, make, catalog):
        people = make()
        people.append([person(1)])
        people.append([person(2)])
        people.table = catalog.alter_table("shop.people", lake.add_column("extra", "INT"))
        people.update(0, [{"extra": 7}])
        assert [row["extra"] for row in read(people.table)] == [7, None]

    def test_partition_columns_have_the_value_of_the_partition(self, catalog):
        table = catalog.create_table(
            "shop.days",
            [*COLUMNS, ("day", "STRING")],
            partition_by=["day"],
            options=DATA_EVOLUTION,
        )
        days = EvolvedRows(table)
        days.append([person(1) | {"day": "mon"}])
        message = days.prepare([{"id": 9, "name": "new", "score": 9.0, "day": "mon"}])
        [file] = message.new_files
        file = replace(file, first_row_id=0, write_cols=("name",))
        table.commit([replace(message, new_files=(file,))])
        assert read(table, where="day = 'mon'") == [
            {"id": 1, "name": "new", "score": 0.5, "day": "mon"}
        ]

    @pytest.mark.sampled(1)
    @pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
    def test_files_of_different_formats_are_joined(self, make, catalog, monkeypatch, file_format):
        monkeypatch.setattr(rolling_writer, "ROW_GROUP_ROWS", 10_000)
        people = make()
        people.append([person(n) for n in range(30_000)])
        changed = lake.set_option("file.format", file_format)
        people.table = catalog.alter_table("shop.people", changed)
        people.update(0, [{"name": f"{n}"} for n in range(30_000)])
        found = people.table.scan().to_arrow()
        assert found["name"].to_pylist() == [f"{n}" for n in range(30_000)]
        assert found["id"].to_pylist() == [*range(30_000)]


class TestRowTrackingAlone:
    """Without 'data-evolution.enabled' every file has whole rows."""

    def test_a_compacted_file_that_names_its_columns_is_read(self, catalog):
        """Java names them, with those that hold the ids and numbers of its rows."""
        table = catalog.create_table(
            "shop.numbered", COLUMNS, options={"row-tracking.enabled": "true"}
        )
        table.write(pa.Table.from_pylist([person(1)], schema=table.schema.arrow_schema()))
        names = ("id", "name", "score", "_ROW_ID", "_SEQUENCE_NUMBER")
        rewrite_entries(
            table, lambda e: replace(e, file=replace(e.file, write_cols=names, first_row_id=None))
        )
        assert read(table) == [person(1)]
        assert read(table, where="id = 1") == [person(1)]


class TestConditions:
    """Statistics of one file do not cover rows that another file changed."""

    def test_a_row_is_found_by_a_value_that_only_the_newer_file_has(self, make):
        people = make()
        people.append([person(1), person(2)])
        people.update(0, [person(11, "new"), person(12, "new")], whole=True)
        assert read(people.table, where="id = 11") == [people.rows[0]]
        assert read(people.table, where="id = 1") == []

    def test_a_row_that_meets_conditions_on_columns_of_two_files_is_found(self, make):
        people = make()
        people.append([person(1), person(2)])
        people.update(0, [{"name": "x"}, {"name": "x"}])
        assert read(people.table, where="name = 'x' AND id = 2") == [people.rows[1]]

    def test_files_that_share_no_rows_are_still_left_out(self, make):
        people = make()
        people.append([person(1)])
        people.append([person(2)])
        people.update(1, [person(12)], whole=True)
        plan = people.table.scan(where="id = 99").explain()
        assert (plan.left_out_by_statistics, plan.files_to_read) == (1, 2)

    def test_a_file_index_leaves_out_no_file_of_a_group(self, make):
        people = make(**{"file-index.bloom-filter.columns": "id"})
        people.append([person(1), person(3)])
        people.update(0, [person(2), person(3)], whole=True)
        assert read(people.table, where="id = 2") == [people.rows[0]]


class TestDamage:
    """Files that cannot be joined are an error that names them."""

    def test_files_that_share_some_rows_only(self, make):
        people = make()
        people.append([person(1), person(2), person(3)])
        update = people.update(1, [{"name": "a"}, {"name": "b"}])
        with pytest.raises(lake.CorruptTableError, match=r"rows 0 to 2 and rows 1 to 2") as raised:
            people.table.scan().to_arrow()
        assert update.file_name in str(raised.value)

    def test_a_file_without_ids(self, make):
        people = make()
        people.append([person(1)])
        rewrite_entries(people.table, lambda e: replace(e, file=replace(e.file, first_row_id=None)))
        with pytest.raises(lake.CorruptTableError, match="has no first row id") as raised:
            people.table.scan().count()
        assert str(raised.value).startswith(f"{people.table.location}: data file ")


class TestDeletedRows:
    """The vector of the oldest file marks the rows of its whole group."""

    def test_rows_are_gone_from_every_column(self, make):
        people = make(**{"deletion-vectors.enabled": "true"})
        people.append([person(1), person(2), person(3)])
        people.update(0, [{"name": f"new {n}"} for n in range(3)])
        self.mark(people, [1])
        assert read(people.table) == [people.rows[0], people.rows[2]]
        assert read(people.table, where="name = 'new 1'") == []

    def mark(self, people: EvolvedRows, rows: list[int]) -> None:
        handle = people.table._handle
        [oldest, *_] = files_of(people.table)
        content, ranges = encode_deletion_vectors(
            {oldest.file_name: DeletionVector.of(rows)}, VectorForm.BITMAP32
        )
        handle.storage.create(handle.layout.index_file("index-1"), content)
        people.mark_deleted(
            IndexManifestEntry(
                partition=people.prepare([person(0)]).partition,
                bucket=0,
                index_type=DELETION_VECTORS,
                file_name="index-1",
                file_size=len(content),
                row_count=len(ranges),
                ranges=ranges,
            )
        )


class TestOtherOperations:
    """Appends and upkeep of metadata work; what would have to join files is refused by name."""

    @pytest.fixture
    def people(self, make) -> EvolvedRows:
        people = make()
        people.append([person(1), person(2)])
        people.update(0, [{"name": "a"}, {"name": "b"}])
        return people

    @pytest.mark.parametrize(
        "operation",
        [
            lambda table: table.compact(),
            lambda table: table.delete("id = 1"),
            lambda table: table.update({"name": "'x'"}, "id = 1"),
        ],
        ids=["compact", "delete", "update"],
    )
    def test_files_are_not_rewritten(self, people, operation):
        before = people.table.latest_snapshot()
        with pytest.raises(lake.UnsupportedError, match=r"'data-evolution.enabled'.*another eng"):
            operation(people.table)
        assert people.table.latest_snapshot() == before

    def test_health_counts_each_row_once_and_advises_the_engine_that_compacts(self, people):
        for number in range(3, 9):
            people.append([person(number)])
        health = people.table.health()
        assert (health.files.files, health.files.rows) == (8, 8)
        [reason] = health.reasons
        assert "compact the table with another engine" in reason.advice

    def test_whole_partitions_are_replaced_and_rolled_back(self, people):
        schema = people.table.schema.arrow_schema()
        people.table.write(pa.Table.from_pylist([person(9)], schema=schema), overwrite={})
        assert read(people.table) == [person(9)]
        people.table.rollback(snapshot=2)
        assert read(people.table) == people.rows
        people.append([person(3)])
        assert files_of(people.table)[-1].first_row_id == 3
        assert read(people.table) == people.rows

    def test_old_snapshots_expire_and_no_row_with_them(self, people):
        people.table.expire_snapshots(retain_max=1, retain_min=1)
        assert read(people.table) == people.rows

    def test_changes_are_the_rows_that_were_added(self, people):
        people.append([person(3)])
        [batch] = people.table.changes(2, mode="delta").to_batches()
        assert batch["id"].to_pylist() == [3]

    def test_changes_of_an_update_are_refused(self, people):
        with pytest.raises(lake.UnsupportedError, match=r"snapshot 2 of .* replaces columns"):
            [*people.table.changes(1, mode="delta").to_batches()]

    def test_also_with_a_condition_that_its_new_values_do_not_meet(self, people):
        people.update(0, [person(11), person(12)], whole=True)
        with pytest.raises(lake.UnsupportedError, match=r"snapshot 3 of .* replaces columns"):
            [*people.table.changes(2, mode="delta", where="id = 1").to_batches()]

    def test_also_if_the_snapshot_before_has_expired(self, people):
        people.table.expire_snapshots(retain_max=1, retain_min=1)
        with pytest.raises(lake.UnsupportedError, match="replaces columns"):
            [*people.table.changes(1, mode="delta").to_batches()]

    def test_spark_reads_no_file_of_a_group_by_itself(self, people):
        people.append([person(3)])
        plain = people.table.scan().plain_files()
        assert plain.files == ()
        assert sum(len(split.files) for split in plain.rest) == 3

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"data-evolution.enabled": "true"}, "set 'row-tracking.enabled'"),
            (DATA_EVOLUTION | {"bucket": "2", "bucket-key": "id"}, "'bucket' = '-1'"),
        ],
    )
    def test_a_table_without_row_ids_or_with_buckets_is_not_made(self, catalog, options, match):
        with pytest.raises(lake.InvalidRequestError, match=match):
            catalog.create_table("shop.bad", COLUMNS, options=options)


def test_any_history_reads_as_a_model_of_it(make):
    print(f"SEED={SEED}")
    chance, people = random.Random(SEED), make(**{"source.split.target-size": "1 kb"})
    for step in range(25):
        if not people.starts or chance.random() < 0.3:
            first = len(people.rows)
            people.append([person(first + n) for n in range(chance.randrange(1, 6))])
        else:
            first, count = chance.choice([*people.starts.items()])
            names = chance.sample(["id", "name", "score"], chance.randrange(1, 4))
            rows = [person(chance.randrange(100), f"step {step}") for _ in range(count)]
            values = [{name: row[name] for name in names} for row in rows]
            people.update(first, values, whole=len(names) == 3)
    assert read(people.table) == people.rows
    for bound in range(0, 100, 20):
        expected = [row for row in people.rows if row["id"] < bound]
        assert read(people.table, where=f"id < {bound}") == expected
        assert read(people.table, where=f"id < {bound}", limit=3) == expected[:3]
