"""One call alters both stores of a Mixed table; a process that dies in between breaks nothing."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.catalog.iceberg.alter import alteration_of
from lakeformat.cli.app import app
from lakeformat.mixed.alter import alter_pair
from lakeformat.mixed.stores.alter_record import ALTERED
from lakeformat.mixed.stores.store_pair import StorePair
from tests.golden.mixed import mixed_copy
from tests.iceberg_rest_server import rest_server
from tests.sampling import SEED, count, sample
from tests.unit.mixed.edited_stores import edit, newest_metadata
from tests.unit.mixed.test_mixed_compaction import meanwhile

runner = CliRunner()
COLUMNS = [("id", "INT"), ("day", "INT"), ("a", "INT"), ("b", "STRING NOT NULL"), ("c", "STRING")]


@pytest.fixture
def catalog(tmp_path: Path) -> lake.IcebergCatalog:
    found = lake.open_catalog(str(tmp_path), format="iceberg")
    assert isinstance(found, lake.IcebergCatalog)
    found.create_database("db")
    return found


@pytest.fixture
def table(catalog: lake.IcebergCatalog) -> lake.MixedTable:
    found = catalog.create_table(
        "db.t", COLUMNS, format="mixed", primary_key=["id", "day"], partition_by=["day"]
    )
    assert isinstance(found, lake.MixedTable)
    return found


def store(rows: list[dict[str, Any]], table: lake.MixedTable) -> None:
    table.write(pa.Table.from_pylist(rows, schema=table.schema.arrow_schema()))


def contents(table: Any) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: (row["id"], row["day"]))


def stores(tmp_path: Path) -> list[dict[str, Any]]:
    return [
        json.loads(newest_metadata(tmp_path / f"db/{name}").read_text())
        for name in ("t", "t_change_")
    ]


def current_fields(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    [found] = [
        each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"]
    ]
    return list(found["fields"])


def require_same_stores(tmp_path: Path) -> None:
    """Both stores have the same columns with the same ids."""
    base, change = stores(tmp_path)
    assert current_fields(base) == current_fields(change)
    assert base["last-column-id"] == change["last-column-id"]
    assert len(base["schemas"]) == len(change["schemas"])
    assert base["properties"].get(ALTERED) == change["properties"].get(ALTERED)


def require_readable_by_pyiceberg(tmp_path: Path) -> None:
    for name in ("t", "t_change_"):
        path = newest_metadata(tmp_path / f"db/{name}")
        without = json.loads(path.read_text()) | {"statistics": []}  # see PyIceberg's closed list
        plain = path.with_name("plain.metadata.json")
        plain.write_text(json.dumps(without))
        theirs = StaticTable.from_metadata(str(plain)).scan().to_arrow()
        ours = lake.open_table(str(path)).scan().to_arrow()
        names = [each for each in ours.column_names if each != "_file_offset"]
        assert [*theirs.select(names).to_pylist()] == ours.select(names).to_pylist()
        plain.unlink()


# Each kind of change


CHANGES = {
    "add": [lake.add_column("d", "BIGINT", comment="new", after="a")],
    "drop": [lake.drop_column("c")],
    "rename": [lake.rename_column("a", "z")],
    "widen": [lake.update_column_type("a", "BIGINT")],
    "move": [lake.update_column_position("c", first=True)],
    "comment": [lake.update_column_comment("a", "number"), lake.update_comment("all orders")],
    "nullable": [lake.update_column_nullability("b", nullable=True)],
    "property": [lake.set_option("change.file-index.hash-bucket", "8")],
    "several": [
        lake.drop_column("c"),
        lake.add_column("c", "INT"),
        lake.rename_column("a", "b2"),
        lake.set_option("lake.auto-buckets", "true"),
    ],
}


def expected(row: dict[str, Any], kind: str) -> dict[str, Any]:
    changed = {**row}
    if kind == "add":
        changed["d"] = None
    if kind == "drop":
        del changed["c"]
    if kind == "rename":
        changed["z"] = changed.pop("a")
    if kind == "several":
        changed["b2"] = changed.pop("a")
        changed["c"] = None
    return changed


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", CHANGES)
def test_each_change_reaches_both_stores_and_old_files_are_merged(catalog, table, tmp_path, kind):
    row = {"day": 1, "a": 1, "b": "b", "c": "c"}
    store([{"id": 1, **row}, {"id": 2, **row}], table)
    table.compact(strategy="full", executor="serial")
    store([{"id": 2, **row, "a": 2}, {"id": 3, **row}], table)
    position = table.position()
    altered = catalog.alter_table("db.t", *CHANGES[kind])
    require_same_stores(tmp_path)
    rows = [
        {"id": 1, **row},
        {"id": 2, **row, "a": 2},
        {"id": 3, **row},
    ]
    wanted = [expected(each, kind) for each in rows]
    assert contents(altered) == wanted
    store([wanted[0] | {"b": "new"}], altered)
    wanted[0]["b"] = "new"
    assert contents(altered) == wanted
    assert [each["b"] for each in altered.changes(position).to_arrow().to_pylist()] == ["new"]
    altered.compact(strategy="full", executor="serial")
    assert contents(altered) == contents(altered.base) == wanted
    assert contents(table) == wanted
    require_same_stores(tmp_path)
    require_readable_by_pyiceberg(tmp_path)


def test_ids_places_and_comments_are_those_of_the_call(catalog, table, tmp_path):
    catalog.alter_table("db.t", *CHANGES["add"], *CHANGES["comment"])
    for each in stores(tmp_path):
        fields = current_fields(each)
        assert [field["name"] for field in fields] == ["id", "day", "a", "d", "b", "c"]
        assert (fields[3]["id"], fields[3]["doc"], fields[2]["doc"]) == (6, "new", "number")
        assert each["properties"]["comment"] == "all orders"
    catalog.alter_table("db.t", lake.remove_option("comment"))
    assert all("comment" not in each["properties"] for each in stores(tmp_path))


def test_a_golden_table_is_altered_like_one_of_ours(tmp_path):
    golden = mixed_copy("keyed_int", tmp_path / "db")
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    before = contents_of_golden(catalog)
    altered = catalog.alter_table(
        "db.t", lake.rename_column("n", "m"), lake.add_column("more", "STRING")
    )
    assert contents_of_golden(catalog) == [{**each, "more": None} for each in before]
    assert altered.schema.named("more").id == 4
    assert golden.location == altered.base._handle.load().places.root
    altered.compact(strategy="full", executor="serial")
    assert contents_of_golden(catalog) == [{**each, "more": None} for each in before]


def contents_of_golden(catalog: Any) -> list[dict[str, Any]]:
    rows = catalog.table("db.t").scan().to_arrow().to_pylist()
    found = [{"n" if name == "m" else name: row[name] for name in row} for row in rows]
    return sorted(found, key=lambda row: row["id"])


def test_deletes_from_before_a_column_could_be_null_are_no_old_values(catalog, table):
    """The delete of an upsert has values in required columns, which are those of the new row."""
    store([{"id": 1, "day": 1, "a": 1, "b": "b", "c": "c"}], table)
    catalog.alter_table("db.t", lake.update_column_nullability("b", nullable=True))
    assert table.changes(0).to_arrow()["rowkind"].to_pylist() == ["+U"]


def make_nullable(catalog, _):
    catalog.alter_table("db.t", lake.update_column_nullability("b", nullable=True))


def add_with_default(catalog, root):
    """Add a column as another program does: rows from before have its initial default."""
    added = {"id": 9, "name": "n", "required": False, "type": "int", "initial-default": 7}
    for each in ("t", "t_change_"):
        [first] = json.loads(newest_metadata(root / "db" / each).read_text())["schemas"]
        new = first | {"schema-id": 1, "fields": [*first["fields"], added]}
        edit(
            root / "db" / each,
            schemas=[first, new],
            **{"current-schema-id": 1, "last-column-id": 9, "format-version": 3, "next-row-id": 0},
        )


@pytest.mark.parametrize("alter", [make_nullable, add_with_default])
def test_deletes_that_were_prepared_before_an_alter_have_no_old_values(
    catalog, table, tmp_path, alter
):
    store([{"id": 1, "day": 1, "a": 1, "b": "old", "c": "c"}], table)
    begin, writer = table.position(), table.new_writer()
    row = {"id": 1, "day": 1, "a": 2, "b": "new", "c": "d"}
    writer.write(pa.Table.from_pylist([row], schema=table.schema.arrow_schema()))
    messages = writer.prepare()
    alter(catalog, tmp_path)
    table = catalog.table("db.t")
    table.commit(messages)
    found = table.changes(begin).to_arrow().to_pylist()
    assert [(row["rowkind"], row["b"]) for row in found] == [("+U", "new")]


def test_old_values_are_delivered_after_a_column_became_nullable(catalog, table):
    catalog.alter_table("db.t", lake.update_column_nullability("b", nullable=True))
    table = catalog.table("db.t")
    begin = table.position()
    row = {"id": 1, "day": 1, "a": None, "b": "b", "c": None}
    new = pa.Table.from_pylist([row, row | {"a": 1}], schema=table.schema.arrow_schema())
    table.write(new, kinds=["-U", "+U"])
    found = table.changes(begin).to_arrow().to_pylist()
    assert [(row["rowkind"], row["a"], row["b"]) for row in found] == [
        ("-U", None, "b"),
        ("+U", 1, "b"),
    ]


def test_old_values_are_delivered_after_their_columns_were_renamed(catalog):
    table = catalog.create_table(
        "db.renamed", [("id", "INT"), ("a", "INT")], format="mixed", primary_key=["id"]
    )
    begin = table.position()
    table.write(pa.table({"id": [1, 1], "a": [5, 6], "op": ["-U", "+U"]}), kinds="op")
    catalog.alter_table("db.renamed", lake.rename_column("a", "b"))
    found = catalog.table("db.renamed").changes(begin).to_arrow().to_pylist()
    assert [(row["rowkind"], row["b"]) for row in found] == [("-U", 5), ("+U", 6)]


@pytest.mark.parametrize("terms", [[], ["c"]])
def test_no_old_values_are_invented_after_another_program_changed_the_partition(
    catalog, tmp_path, terms
):
    table = catalog.create_table(
        "db.p", COLUMNS, format="mixed", primary_key=["id"], partition_by=terms
    )
    begin = table.position()
    old = {"id": 1, "day": None, "a": None, "b": "b", "c": "c"}
    for a in (1, 2):
        store([old | {"a": a}], table)
    new = pa.Table.from_pylist([old, old | {"day": 3}], schema=table.schema.arrow_schema())
    table.write(new, kinds=["-U", "+U"])
    before = table.changes(begin).to_arrow().to_pylist()
    field = {"source-id": 5, "field-id": 1001, "transform": "identity", "name": "of_c"}
    for each in ("p", "p_change_"):
        path = tmp_path / "db" / each
        specs = json.loads(newest_metadata(path).read_text())["partition-specs"]
        added = {"spec-id": 7, "fields": [] if terms else [field]}
        edit(
            path,
            **{
                "partition-specs": [*specs, added],
                "default-spec-id": 7,
                "last-partition-id": 1001,
            },
        )
    assert catalog.table("db.p").changes(begin).to_arrow().to_pylist() == before
    assert [(row["rowkind"], row["a"]) for row in before[:2]] == [("+U", 1), ("+U", 2)]


@pytest.mark.parametrize("metastore", ["sql", "rest"])
def test_a_catalog_service_gets_the_changes_of_both_stores(metastore, tmp_path):
    with rest_server() as server:
        server.warehouse = f"file://{tmp_path}"
        uri = server.uri if metastore == "rest" else f"jdbc:sqlite:{tmp_path}/catalog.db"
        catalog = lake.open_catalog(str(tmp_path), format="iceberg", metastore=metastore, uri=uri)
        catalog.create_database("db")
        made = catalog.create_table("db.t", COLUMNS, format="mixed", primary_key=["id"])
        store([{"id": 1, "day": 1, "a": 1, "b": "b", "c": "c"}], made)
        interrupted(made, lake.rename_column("a", "z"), lake.set_option("x", "1"))
        altered = catalog.alter_table("db.t", lake.rename_column("z", "a"), lake.drop_column("c"))
        assert contents(altered) == [{"id": 1, "day": 1, "a": 1, "b": "b"}]
        for each in (altered.base, altered.change):
            assert each.schema.column_names == ["id", "day", "a", "b"]
            assert each.properties["x"] == "1"


# Refused changes


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lake.drop_column("id"), "key column 'id' of .* cannot be dropped"),
        (lake.rename_column("id", "k"), "key column 'id' of .* cannot be renamed"),
        (lake.update_column_type("id", "BIGINT"), "'id' of .* cannot get another type"),
        (lake.update_column_nullability("id", nullable=True), "'id' of .* cannot become nullable"),
        (lake.update_column_nullability("a", nullable=False), "cannot become NOT NULL"),
        (lake.add_column("A", "INT"), "there is a column 'a'"),
        (
            lake.rename_column("a", "C"),
            "column cannot be renamed to 'C', because there is a .* 'c'",
        ),
        (lake.add_column("_file_offset", "INT"), "hidden column of this name"),
        (lake.rename_column("a", "_file_offset"), "hidden column of this name"),
        (lake.update_column_type("a", "STRING"), "'a' is int and cannot become string"),
        (lake.drop_column("nothing"), "there is no column 'nothing'"),
        (lake.set_option("mixed-format.table-store", "base"), "only operations on both stores"),
        (lake.remove_option("mixed-format.primary-key-fields"), "only operations on both stores"),
        (lake.set_option("lake.detaching", "db.t"), "only operations on both stores"),
        ("drop a", "is not a change of a schema: pass the results"),
        (lake.set_option("format-version", "3"), "does not change the format version"),
        (lake.set_option("base.file-index.hash-bucket", "3"), "set it to a power of two"),
        (lake.set_option("write.upsert.enabled", "maybe"), "true or false"),
        (lake.rename_column("c", "d"), "'table.event-time-field' names it"),
    ],
)
def test_a_refused_change_is_named_and_no_store_is_altered(catalog, table, tmp_path, change, error):
    catalog.alter_table("db.t", lake.set_option("table.event-time-field", "c"))
    before = stores(tmp_path)
    with pytest.raises(lake.LakeError, match=error):
        catalog.alter_table("db.t", lake.add_column("more", "STRING"), change)
    assert stores(tmp_path) == before


def test_a_column_that_makes_partitions_in_one_store_is_kept_in_both(catalog, tmp_path):
    catalog.create_table(
        "db.p", COLUMNS, format="mixed", primary_key=["id"], partition_by=["bucket(2, a)"]
    )
    with pytest.raises(
        lake.InvalidRequestError, match="'a' cannot be dropped, because the current or"
    ):
        catalog.alter_table("db.p", lake.drop_column("a"))
    unpartitioned = [{"spec-id": 0, "fields": []}]
    edit(tmp_path / "db/p", **{"partition-specs": unpartitioned})
    with pytest.raises(
        lake.InvalidRequestError, match="'a' cannot be dropped, because the current or"
    ):
        catalog.alter_table("db.p", lake.drop_column("a"))


def test_a_change_store_is_not_altered_alone(catalog, table):
    with pytest.raises(lake.UnsupportedError, match=r"renamed alone: use the name 'db\.t'"):
        catalog.alter_table("db.t_change_", lake.add_column("more", "INT"))


# Interrupted alters


def interrupted(table: lake.MixedTable, *changes: Any) -> None:
    """Alter the change store only, as a process does that dies before the second commit.

    Like every alter, this one first completes the one before it.
    """
    table._pair.complete_alter()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StorePair, "complete_alter", lambda _: None)
        alter_pair(table._pair, alteration_of("db.t", changes))


NEXT = ("read", "repeat", "write", "compact", "begin", "alter")
"""The steps that follow an interrupted alter."""


@pytest.mark.parametrize(
    ("kind", "then"),
    sample(
        [(kind, then) for kind in CHANGES for then in NEXT], 9, kind=lambda each: each[1], of="next"
    ),
)
def test_an_interrupted_alter_is_read_as_made_and_completed_by_the_next_change(
    catalog, table, tmp_path, kind, then
):
    row = {"id": 1, "day": 1, "a": 1, "b": "b", "c": "c"}
    store([row], table)
    interrupted(table, *CHANGES[kind])
    before = stores(tmp_path)
    opened = catalog.table("db.t")
    wanted = [expected(row, kind)]
    assert contents(opened) == contents(table) == wanted
    for name in ("change.file-index.hash-bucket", "lake.auto-buckets", "comment"):
        assert opened.properties.get(name) == before[1]["properties"].get(name)
    assert stores(tmp_path) == before
    if then == "read":
        return
    if then == "repeat":
        catalog.alter_table("db.t", *CHANGES[kind])
    elif then == "write":
        wanted = [{**wanted[0], "id": 2}, *wanted][::-1]
        store([wanted[1]], opened)
    elif then == "compact":
        opened.compact(strategy="full", executor="serial")
    elif then == "begin":
        opened.begin().abort()
    else:
        catalog.alter_table("db.t", lake.add_column("last", "INT"))
        wanted[0]["last"] = None
    assert contents(opened) == wanted
    require_same_stores(tmp_path)


@pytest.mark.parametrize("kind", ["add", "drop", "rename", "widen"])
def test_work_that_runs_during_an_alter_is_published_after_it(
    catalog, table, tmp_path, kind, monkeypatch
):
    row = {"id": 1, "day": 1, "a": 1, "b": "b", "c": "c"}
    store([row], table)
    meanwhile(monkeypatch, lambda: catalog.alter_table("db.t", *CHANGES[kind]))
    table.compact(strategy="full", executor="serial")
    wanted = [expected(row, kind)]
    assert contents(table) == contents(table.base) == wanted
    with table.begin() as batch:
        catalog.alter_table("db.t", lake.rename_column("b", "text"))
        wanted[0]["text"] = wanted[0].pop("b")
        rows = [{**wanted[0], "id": 2}]
        batch.overwrite(pa.Table.from_pylist(rows, schema=table.schema.arrow_schema()), "table")
    assert contents(table) == contents(table.base) == rows


def test_an_alter_of_amoro_that_reached_only_the_base_store_is_completed(catalog, table, tmp_path):
    """Amoro alters the base store first."""
    row = {"id": 1, "day": 1, "a": 1, "b": "b", "c": "c"}
    store([row], table)
    schema = json.loads(newest_metadata(tmp_path / "db/t").read_text())["schemas"][0]
    more = {"id": 6, "name": "more", "required": False, "type": "int"}
    ahead = {**schema, "schema-id": 1, "fields": [*schema["fields"], more]}
    edit(
        tmp_path / "db/t",
        schemas=[schema, ahead],
        **{"current-schema-id": 1, "last-column-id": 6},
    )
    opened = catalog.table("db.t")
    assert contents(opened) == [{**row, "more": None}]
    store([{**row, "more": 5}], opened)
    assert contents(opened) == [{**row, "more": 5}]
    require_same_stores(tmp_path)


def test_columns_that_only_the_change_store_has_are_kept_by_an_alter(catalog, table, tmp_path):
    """Another program altered the change store, by hand."""
    schema = json.loads(newest_metadata(tmp_path / "db/t_change_").read_text())["schemas"][0]
    more = {"id": 6, "name": "more", "required": False, "type": "int"}
    ahead = {**schema, "schema-id": 1, "fields": [*schema["fields"], more]}
    edit(
        tmp_path / "db/t_change_",
        schemas=[schema, ahead],
        **{"current-schema-id": 1, "last-column-id": 6},
    )
    altered = catalog.alter_table("db.t", lake.add_column("last", "INT"))
    assert altered.schema.column_names[-2:] == ["more", "last"]
    require_same_stores(tmp_path)


def test_a_base_store_that_another_program_alters_meanwhile_is_not_overwritten(
    catalog, table, tmp_path
):
    interrupted(table, lake.drop_column("c"))
    schema = json.loads(newest_metadata(tmp_path / "db/t").read_text())["schemas"][0]
    more = {"id": 9, "name": "more", "required": False, "type": "int"}
    ahead = {**schema, "schema-id": 1, "fields": [*schema["fields"], more]}
    edit(
        tmp_path / "db/t",
        schemas=[schema, ahead],
        **{"current-schema-id": 1, "last-column-id": 9},
    )
    with pytest.raises(lake.CorruptTableError, match="reached only one store"):
        catalog.table("db.t")


def test_a_record_that_cannot_be_read_is_named(catalog, table, tmp_path):
    edit(tmp_path / "db/t_change_", properties={ALTERED: '{"id": 1}'})
    with pytest.raises(lake.CorruptTableError, match="which is not a record of an alter"):
        catalog.table("db.t")


def test_commands_set_properties_of_both_stores(table, tmp_path):
    path = str(tmp_path / "db/t")
    named = ["--format", "iceberg", "--warehouse", str(tmp_path)]
    runner.invoke(app, [*named, "set-option", "db.t", "a=b", "c=d"], catch_exceptions=False)
    runner.invoke(app, ["unset-option", path, "a"], catch_exceptions=False)
    for each in stores(tmp_path):
        assert "a" not in each["properties"]
        assert each["properties"]["c"] == "d"
    refused = runner.invoke(app, ["set-option", f"{path}_change_", "a=b"])
    assert "is the change store of a Mixed table" in str(refused.exception)


# Random histories


def test_random_writes_alters_and_compactions_agree_with_a_dict(catalog, table, tmp_path):
    draw = Random(f"{SEED} mixed alters")
    model: dict[tuple[int, int], dict[str, Any]] = {}
    followed: dict[tuple[int, int], dict[str, Any]] = {}
    position, names, number = table.position(), {"a": "int", "b": "text", "c": "text"}, 0
    for step in range(count(10, 80)):
        what = draw.choice(["write", "write", "alter", "compact"])
        if what == "write":
            write_randomly(table, draw, model, names, step)
        elif what == "compact":
            table.compact(strategy=draw.choice(["minor", "full"]), executor="serial")
        else:
            number += 1
            alter_randomly(catalog, table, draw, model, names, number)
            followed.clear()
            followed.update({key: {**row} for key, row in model.items()})
            position = table.position()
        shown = f"SEED={SEED}, step {step}, {what}"
        found = {(row["id"], row["day"]): row for row in contents(table)}
        assert found == {key: {"id": key[0], "day": key[1], **row} for key, row in model.items()}, (
            shown
        )
        for change in table.changes(position).to_arrow().to_pylist():
            key = (change.pop("id"), change.pop("day"))
            if change.pop("rowkind") in ("+I", "+U"):
                followed[key] = change
            else:
                followed.pop(key, None)
        position = table.position()
        assert followed == model, shown
    # A write completes a last alter that died; a read shows its result without changing a store.
    write_randomly(table, draw, model, names, 80)
    require_same_stores(tmp_path)


def write_randomly(
    table: lake.MixedTable,
    draw: Random,
    model: dict[tuple[int, int], dict[str, Any]],
    names: dict[str, str],
    step: int,
) -> None:
    rows, kinds = [], []
    for place in range(draw.randrange(1, 8)):
        key = (draw.randrange(5), draw.randrange(2))
        values = {
            name: step * 10 + place if kind == "int" else f"{step}.{place}"
            for name, kind in names.items()
        }
        rows.append({"id": key[0], "day": key[1], **values})
        kinds.append(draw.choice(["+I", "+U", "-D"]))
        if kinds[-1] == "-D":
            model.pop(key, None)
        else:
            model[key] = values
    table.write(pa.Table.from_pylist(rows, schema=table.schema.arrow_schema()), kinds)


def alter_randomly(
    catalog: lake.IcebergCatalog,
    table: lake.MixedTable,
    draw: Random,
    model: dict[tuple[int, int], dict[str, Any]],
    names: dict[str, str],
    number: int,
) -> None:
    what = draw.choice(["add", "drop", "rename", "move", "nullable", "property"])
    name, new = draw.choice([*names]), f"n{number}"
    if what == "drop" and len(names) == 1:
        what = "add"
    change = {
        "add": lake.add_column(new, "BIGINT"),
        "drop": lake.drop_column(name),
        "rename": lake.rename_column(name, new),
        "move": lake.update_column_position(name, first=True),
        "nullable": lake.update_column_nullability(name, nullable=True),
        "property": lake.set_option("base.file-index.hash-bucket", draw.choice(["1", "4", "16"])),
    }[what]
    if draw.random() < 0.3:
        interrupted(table, change)
    else:
        catalog.alter_table("db.t", change)
    if what == "add":
        names[new] = "int"
    elif what == "rename":
        names[new] = names.pop(name)
    elif what == "drop":
        del names[name]
    for row in model.values():
        if what == "add":
            row[new] = None
        elif what == "rename":
            row[new] = row.pop(name)
        elif what == "drop":
            del row[name]
