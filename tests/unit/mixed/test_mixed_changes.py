"""Files of changes are like those of Amoro; rows that have no place in them are refused."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

import lakeformat as lake
from lakeformat.iceberg.table import load_iceberg_table
from lakeformat.mixed.file_names import FileKind, parse_file_name
from lakeformat.mixed.stores.file_offset import FILE_OFFSET
from lakeformat.storage import LocalStorage
from tests.golden.mixed import MixedTable, mixed_copy
from tests.sampling import SEED, count
from tests.unit.mixed.edited_stores import edit, newest_metadata


@pytest.fixture
def pair(tmp_path: Path) -> MixedTable:
    return mixed_copy("keyed_int", tmp_path / "db")


def opened(golden: MixedTable) -> lake.MixedTable:
    table = lake.open_table(golden.location)
    assert isinstance(table, lake.MixedTable)
    return table


def rows(*values: tuple[int, str]) -> pa.Table:
    ids, names = [each[0] for each in values], [each[1] for each in values]
    return pa.table({"id": pa.array(ids, pa.int32()), "name": names})


def names_of(table: lake.MixedTable) -> dict[int, str]:
    found = table.scan(["id", "name"]).to_arrow().to_pylist()
    assert len({each["id"] for each in found}) == len(found)
    return {each["id"]: each["name"] for each in found}


def files(golden: MixedTable) -> set[Path]:
    return {*golden.root.rglob("data/**/*.parquet")}


# Rows and kinds


def test_random_changes_are_read_as_a_dict_of_keys_has_them(pair):
    """Batches with and without kinds, keys that repeat in a batch, and other numbers of nodes."""
    random = Random(f"{SEED} mixed writes")
    model = names_of(opened(pair))
    for step in range(count(6, 100)):
        if not step % 4:
            buckets = str(2 ** random.randrange(4))
            edit(pair.root / "t", properties={"change.file-index.hash-bucket": buckets})
            table = opened(pair)
        given, kinds = [], []
        allowed = random.choice([["+I"], ["+I", "+U", "-D", "-U+U"]])
        for number in range(random.randrange(1, 30)):
            key, name = random.randrange(-20, 20), f"{step}.{number}"
            kind = random.choice(allowed)
            if kind == "-U+U" and key in model:
                given.append((key, model[key]))
                kinds.append("-U")
            kinds.append("-D" if kind == "-D" else "+U" if kind == "-U+U" else kind)
            given.append((key, name))
            if kind == "-D":
                model.pop(key, None)
            else:
                model[key] = name
        batches = rows(*given).to_batches(max_chunksize=random.randrange(1, 30))
        table.write(batches, kinds if len(allowed) > 1 else None)
        assert names_of(table) == model, f"SEED={SEED}, step {step}"


def test_an_update_has_one_offset_and_other_changes_have_one_each(pair):
    table, before = opened(pair), files(pair)
    given = rows((9, "i"), (9, "i2"), (9, "i2"), (9, "i3"), (13, "m"))
    table.write(given, ["-U", "+U", "-U", "+U", "-D"])
    offsets = {}
    for path in files(pair) - before:
        kind = parse_file_name(str(path)).kind
        for row in pq.read_table(path).to_pylist():
            offsets.setdefault((kind, row["name"]), []).append(row["_file_offset"])
    delete, insert = FileKind.CHANGE_DELETE, FileKind.INSERT
    assert offsets == {
        (delete, "i"): [1],
        (insert, "i2"): [1],
        (delete, "i2"): [2],
        (insert, "i3"): [2],
        (delete, "m"): [3],
    }


def test_files_have_names_and_columns_as_those_of_amoro(pair):
    before = files(pair)
    opened(pair).write(rows((1, "new")))
    made = sorted(files(pair) - before)
    assert {re.sub("0-[0-9a-f]{32}-", "0-…-", each.name) for each in made} == {
        "4-ED-0-00000-0-…-00001.parquet",
        "4-I-0-00000-0-…-00002.parquet",
    }
    for path in (*made, next(iter(before))):
        stored = pq.read_schema(path)
        ids = {each.name: each.metadata[b"PARQUET:field_id"] for each in stored}
        assert ids == {"id": b"1", "name": b"2", "n": b"3", FILE_OFFSET.name: b"2147482645"}
        assert not stored.field("id").nullable
    deletes, inserts = map(pq.read_table, made)
    assert deletes.to_pylist() == [{"id": 1, "name": None, "n": None, FILE_OFFSET.name: 1}]
    assert inserts.to_pylist() == [{"id": 1, "name": "new", "n": None, FILE_OFFSET.name: 1}]


def test_without_upsert_an_insert_of_an_existing_key_is_a_duplicate_unless_it_is_asked_for(pair):
    edit(pair.root / "t", properties={"write.upsert.enabled": "false"})
    table = opened(pair)
    key = min(names_of(table))
    table.write(rows((key, "twice")))
    assert table.scan(where=f"id = {key}").count() == 2
    table.upsert(rows((key, "once")), ["id"])
    assert table.scan(["name"], where=f"id = {key}").to_arrow()["name"].to_pylist() == ["once"]
    with pytest.raises(lake.InvalidRequestError, match=r"by must be the key, id, got \['name'\]"):
        table.upsert(rows((key, "x")), ["name"])


def test_a_row_replaces_the_one_in_its_partition_and_moves_only_with_the_old_values(tmp_path):
    golden = mixed_copy("keyed_day_minor", tmp_path)
    table = opened(golden)
    old = table.scan().to_arrow().slice(0, 1)
    key = old["id"][0].as_py()
    later = pa.array([datetime(2031, 5, 5)], old.schema.field(3).type)
    new = old.set_column(3, old.schema.field(3), later)
    table.write(pa.concat_tables([old, new]), ["-U", "+U"])
    assert table.scan(where=f"id = {key}").to_arrow() == new
    assert [*golden.root.glob("t_change_/data/op_time_day=2031-05-05/*-I-0-*.parquet")]


# Refused rows and tables


def test_a_key_is_never_null(tmp_path):
    golden = mixed_copy("typed_keys", tmp_path)
    table = opened(golden)
    one = table.scan().to_arrow().slice(0, 1)
    for store in ("t", "t_change_"):
        with_first_field(golden.root / store, required=False)
    name, kind = one.column_names[0], one.schema.field(0).type
    nulled = one.set_column(0, pa.field(name, kind), [pa.nulls(1, kind)])
    with pytest.raises(
        lake.InvalidRequestError, match=f"row 1 has a null in the key column '{name}"
    ):
        opened(golden).write([one, nulled])


def with_first_field(store: Path, **members: object) -> None:
    schemas = json.loads(newest_metadata(store).read_text())["schemas"]
    schemas[0]["fields"][0] |= members
    edit(store, schemas=schemas)


def test_a_key_without_a_hash_and_nodes_that_are_no_power_of_two_are_refused_by_name(pair):
    edit(pair.root / "t", properties={"change.file-index.hash-bucket": "3"})
    with pytest.raises(lake.InvalidRequestError, match=r"'change\.file-index\.hash-bucket' is 3"):
        opened(pair).write(rows((1, "a")))
    for store in ("t", "t_change_"):
        with_first_field(pair.root / store, type="timestamp_ns")
    with pytest.raises(lake.UnsupportedError, match="'id' has the type timestamp_ns, for which"):
        opened(pair).write(pa.table({"id": pa.array([1], pa.timestamp("ns"))}))


def test_an_error_names_the_row_as_it_was_given(pair):
    bad = rows((1, "a")).set_column(0, "id", pa.array([None], pa.int32()))
    with pytest.raises(lake.InvalidRequestError, match=r"'id' is required.* the first .*in row 2"):
        opened(pair).write([rows((1, "a"), (2, "b")), bad])


def test_version_1_has_no_order_of_changes_and_is_refused(pair, tmp_path):
    for store in ("t", "t_change_"):
        edit(pair.root / store, **{"format-version": 1})
    with pytest.raises(lake.UnsupportedError, match="has version 1 of the Iceberg format"):
        opened(pair).write(rows((1, "a")))
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    schema = pa.schema([("id", pa.int64())])
    with pytest.raises(lake.InvalidRequestError, match="format_version is 1, but files of that"):
        catalog.create_table("db.new", schema, format="mixed", primary_key=["id"], format_version=1)
    assert sorted(path.name for path in (tmp_path / "db").iterdir()) == ["t", "t_change_"]


def test_a_new_table_also_has_amoros_writers_keep_keys_unique_unless_its_options_do_not(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    schema = pa.schema([("id", pa.int64())])
    for name, options in (("a", {}), ("b", {"write.upsert.enabled": "false"})):
        made = catalog.create_table(
            f"db.{name}", schema, format="mixed", primary_key=["id"], options=options
        )
        kept = options.get("write.upsert.enabled", "true")
        assert made.properties["write.upsert.enabled"] == kept
        assert made.change.properties["write.upsert.enabled"] == kept


# Commits


def test_a_repeated_commit_writes_nothing(pair):
    table, commit = opened(pair), lake.CommitId("run", 7)
    assert table.find_commit(commit) is None
    first = table.write(rows((1, "a"), (2, "b")), commit=commit, properties={"source": "orders"})
    assert first.rows == 2
    before = files(pair)
    again = table.write(rows((1, "other")), commit=commit)
    assert (again.replayed, again.snapshot_id, again.rows) == (True, first.snapshot_id, 2)
    assert table.find_commit(commit) == again
    assert names_of(table)[1] == "a"
    assert files(pair) == before
    newest = table.change.snapshots()[-1]
    assert (newest.operation, newest.summary["source"]) == ("append", "orders")
    assert table.write(rows()).snapshot_id is None


# Other readers and commands


def test_each_store_is_read_alone_by_iceberg_and_by_pyiceberg(pair):
    table = opened(pair)
    table.write(rows((500, "new")))
    store = pair.root / "t_change_"
    ours = load_iceberg_table(LocalStorage(), str(store)).scan(["id", "name"]).to_arrow()
    theirs = StaticTable.from_metadata(str(newest_metadata(store))).scan().to_arrow()
    assert theirs.num_rows == ours.num_rows == table.change.scan().count()
    found = theirs.filter(pa.compute.equal(theirs["id"], 500))
    assert sorted(map(str, found["name"].to_pylist())) == ["None", "new"]
    assert theirs.select(["id", "name"]).sort_by("id")["id"] == ours.sort_by("id")["id"]
    assert StaticTable.from_metadata(str(newest_metadata(pair.root / "t"))).scan().count() == 0


def test_a_key_whose_type_was_changed_is_read_with_all_deletes_and_not_written(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    narrow, wide = (pa.schema([("id", kind), ("name", pa.string())]) for kind in KINDS)
    table = catalog.create_table("db.t", narrow, format="mixed", primary_key=["id"])
    table.write(pa.table([[-5, -6], ["a", "b"]], schema=narrow))
    with_long_key(tmp_path / "db")
    table = lake.open_table(str(tmp_path / "db/t"))
    # As a writer of Amoro does, which hashes the key as a long.
    allowed = "lakeformat.mixed.write.write_changes.require_one_key_type"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(allowed, lambda *_: None)
        table.write(pa.table([[-5], ["new"]], schema=wide))
        table.write(pa.table([[-6], [None]], schema=wide), kinds=["-D"])
    assert table.scan().to_arrow().to_pylist() == [{"id": -5, "name": "new"}]
    assert table.scan(where="id = -5").count() == 1
    assert table.scan(where="id = -6").count() == 0
    for call in (
        lambda: table.write(pa.table([[1], ["c"]], schema=wide)),
        lambda: table.compact(strategy="full"),
        table.plan_optimizing,
    ):
        with pytest.raises(lake.UnsupportedError, match="key column 'id' had the types int and lo"):
            call()


KINDS = pa.int32(), pa.int64()


def with_long_key(database: Path) -> None:
    for store in ("t", "t_change_"):
        schemas = json.loads(newest_metadata(database / store).read_text())["schemas"]
        first, *others = schemas[0]["fields"]
        long = schemas[0] | {"schema-id": 1, "fields": [first | {"type": "long"}, *others]}
        edit(database / store, schemas=[*schemas, long], **{"current-schema-id": 1})
