"""Arguments of wrong types are refused by name, before anything is written."""

from __future__ import annotations

import numpy
import pandas
import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import SYSTEM
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.schema_file import create_schema
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.schema import TableSchema, new_schema
from lakeformat.storage import MemoryStorage
from lakeformat.types.type_rules import MAX_DEPTH
from lakeformat.types.types import STRING, DataField

ROW = pa.table({"a": pa.array([1], pa.int32())})
HALF = "half \ud800"
"""Half of a surrogate pair, which no file can hold."""


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    catalog = lake.open_catalog(tmp_path)
    catalog.create_database("shop")
    return catalog


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda: lake.update_comment(5), "comment must be text, got 5"),
        (lambda: lake.update_comment(b"x"), "comment must be text"),
        (lambda: lake.update_comment(HALF), "comment must be text"),
        (lambda: lake.update_column_comment("a", 5), "comment must be text"),
        (lambda: lake.update_column_comment("a", ["x"]), "comment must be text"),
        (lambda: lake.add_column("b", "INT", comment=5), "comment must be text"),
        (lambda: lake.add_column(HALF, "INT"), "a column must be named by text"),
        (lambda: lake.add_column(5, "INT"), "a column must be named by text"),
        (lambda: lake.rename_column("a", 5), "new_name must be text"),
        (lambda: lake.rename_column("a", HALF), "new_name must be text"),
        (lambda: lake.rename_column("a", " "), "empty or reserved"),
        (lambda: lake.update_column_nullability("a", nullable=None), "nullable must be True or"),
        (lambda: lake.set_option(5, "x"), "an option's key must be text"),
        (lambda: lake.set_option("x", HALF), "the value of option 'x' must be text"),
        (lambda: lake.remove_option(5), "an option's key must be text"),
        (lambda: lake.update_column_type("a", 5), "a type must be text"),
        (lambda: lake.update_column_type("a", "VECTOR<INT, x>"), "length of a VECTOR must be"),
        (lambda: lake.update_column_type("a", "VECTOR<INT, -3>"), "length of a VECTOR must be"),
        (lambda: lake.update_column_type("a", "ROW<x INT, x INT>"), "duplicate field names: x"),
        (lambda: lake.add_column("d", "ARRAY<" * 3000 + "INT" + ">" * 3000), "nested too deep"),
    ],
)
def test_a_change_is_refused_when_it_is_made(ask, named):
    with pytest.raises(lake.InvalidRequestError, match=named):
        ask()


@pytest.mark.parametrize(
    ("columns", "options", "named"),
    [
        ([("a", "INT")], {"comment": 5}, "comment must be text"),
        ([("a", "INT")], {"comment": HALF}, "comment must be text"),
        ([("a", "INT")], {"options": {"file.format": []}}, "option 'file.format' must be text"),
        ([("a", 5)], {}, "a type must be text"),
        ([(5, "INT")], {}, "a column's name must be text"),
        ([(HALF, "INT")], {}, "a column's name must be text"),
        ([("a", "ROW<x INT, x INT>")], {}, "column 'a' has a ROW with duplicate field names"),
        ([("a", "ARRAY<ROW<x ROW<y INT, y INT>>>")], {}, "duplicate field names: y"),
        (pa.schema([("a", pa.struct([("", pa.int32())]))]), {}, "a field without a name"),
        (pa.schema([("a", pa.struct([(HALF[:4], pa.struct([]))]))]), {}, "ROW without fields"),
    ],
)
def test_a_table_is_refused_and_nothing_is_made(catalog, tmp_path, columns, options, named):
    with pytest.raises(lake.InvalidRequestError, match=named):
        catalog.create_table("shop.orders", columns, **options)
    assert not list((tmp_path / "shop.db").iterdir())


def nested(depth: int) -> str:
    return "ROW<x " * depth + "INT" + ">" * depth


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_types_nest_as_deep_as_files_of_every_format_are_read_back(catalog, file_format):
    table = catalog.create_table(
        "shop.deep", [("a", nested(MAX_DEPTH))], options={"file.format": file_format}
    )
    table.write(pa.table({"a": pa.nulls(1, table.schema.arrow_schema().field(0).type)}))
    assert catalog.table("shop.deep").scan().to_arrow().num_rows == 1


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100, 200])
def test_deeper_types_are_refused_in_a_new_table_and_a_changed_one(catalog, depth):
    too_deep = f"nests types more than {MAX_DEPTH} deep"
    with pytest.raises(lake.InvalidRequestError, match=too_deep):
        catalog.create_table("shop.deep", [("a", nested(depth))])
    catalog.create_table("shop.deep", [("a", nested(MAX_DEPTH))])
    with pytest.raises(lake.InvalidRequestError, match=too_deep):
        catalog.alter_table("shop.deep", lake.add_column("a.y", nested(MAX_DEPTH)))


def test_a_schema_that_could_not_be_read_back_is_not_published():
    storage, layout = MemoryStorage(), TableLayout("orders")
    broken = TableSchema(0, (DataField(0, "a", STRING, description=5),), 0)
    with pytest.raises(lake.InvalidRequestError, match=r"would be unreadable: .* is 5, not text"):
        create_schema(storage, layout, broken)
    assert list(storage.list("")) == []


@pytest.mark.parametrize("properties", [{"a": HALF}, {HALF: "a"}, {"a": 5}])
def test_a_property_that_is_no_text_leaves_no_file_behind(catalog, tmp_path, properties):
    table = catalog.create_table("shop.orders", [("a", "INT")])
    with pytest.raises(lake.InvalidRequestError, match="properties must map str to str"):
        table.write(pa.table({"a": [1]}), properties=properties)
    assert [path.name for path in (tmp_path / "shop.db/orders").iterdir()] == ["schema"]


@pytest.mark.parametrize("engine", ["deduplicate", "Deduplicate", "DEDUPLICATE"])
def test_a_merge_engine_is_known_in_any_letter_case(engine):
    schema = new_schema(
        [("k", "INT")], primary_key=["k"], options={"merge-engine": engine}, time_millis=0
    )
    handle = TableHandle(MemoryStorage(), TableLayout("orders"), schema, SYSTEM)
    require_allowed(handle, Operation.READ)
    assert handle.options.merge_engine == "deduplicate"


def test_what_identifies_a_row_is_in_the_order_of_the_primary_key():
    schema = new_schema(
        [("a", "INT"), ("dt", "DATE"), ("b", "INT")],
        primary_key=["b", "dt", "a"],
        partition_by=["dt"],
        time_millis=0,
    )
    assert [field.name for field in schema.key_fields] == ["b", "a"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.scan(5),
        lambda table: table.scan(columns=[[]]),
        lambda table: table.scan(limit=True),
        lambda table: table.scan(as_of=pandas.NaT),
        lambda table: table.changes(0, columns=5),
        lambda table: table.changes(0, columns=[[]]),
        lambda table: table.stream("from-snapshot", snapshot="1"),
        lambda table: table.stream(consumer=5),
        lambda table: table.scan(where=lake.col("a").like("%\ud800")),
        lambda table: table.scan(where=lake.col("a").contains("\ud800")),
    ],
)
def test_what_names_nothing_that_can_be_read_is_refused(catalog, ask):
    table = catalog.create_table("shop.orders", [("a", "STRING")])
    table.write(pa.table({"a": ["x"]}))
    with pytest.raises(lake.InvalidRequestError):
        ask(table)


@pytest.mark.parametrize("columns", [5, [[]], [], ["nix"]])
def test_columns_of_a_table_beside_a_table_are_named_too(catalog, columns):
    catalog.create_table("shop.orders", [("a", "STRING")])
    with pytest.raises(lake.InvalidRequestError, match="must name some of"):
        catalog.table("shop.orders$files").scan(columns)


@pytest.mark.parametrize(
    "read",
    [
        lambda table, columns: table.scan(columns),
        lambda table, columns: table.changes(0, columns=columns),
        lambda table, columns: table.system_table("files").scan(columns),
    ],
)
def test_a_text_in_place_of_a_list_of_columns_gets_advice(catalog, read):
    table = catalog.create_table("shop.orders", [("a", "STRING"), ("b", "STRING")])
    table.write(pa.table({"a": ["x"], "b": ["y"]}))
    with pytest.raises(lake.InvalidRequestError, match=r"as in columns=\['a', 'b'\]$"):
        read(table, "a, b")


def test_a_number_of_numpy_limits_rows(catalog):
    table = catalog.create_table("shop.orders", [("a", "INT")])
    table.write(pa.table({"a": pa.array(range(9), pa.int32())}))
    assert table.scan(limit=numpy.int64(3)).count() == 3


@pytest.mark.parametrize(
    "kind", ["STRING", "ARRAY<STRING>", "ROW<x STRING>", "MAP<STRING, STRING>"]
)
def test_a_text_that_is_no_utf8_is_refused_by_row_and_column(catalog, kind):
    table = catalog.create_table("shop.orders", [("a", kind)])
    raw = pa.array([b"fine", b"\xff"])
    texts = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    if kind.startswith("ARRAY"):
        texts = pa.ListArray.from_arrays([0, 1, 2], texts)
    elif kind.startswith("MAP"):
        texts = pa.MapArray.from_arrays([0, 1, 2], pa.array(["k", "k"]), texts)
    elif kind.startswith("ROW"):
        texts = pa.StructArray.from_arrays([texts], ["x"])
    with pytest.raises(lake.InvalidRequestError, match=r"column 'a'.*UTF.*the first .*in row 1"):
        table.write(pa.table({"a": texts}))


def test_texts_that_end_before_they_start_are_refused(catalog):
    table = catalog.create_table("shop.orders", [("a", "STRING")])
    offsets = pa.array([0, 2, 1], pa.int32()).buffers()[1]
    texts = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abc")])
    with pytest.raises(lake.InvalidRequestError, match="column 'a' has an invalid"):
        table.write(pa.table({"a": texts}))


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("missing", [True, False])
def test_a_row_may_be_null_whose_member_may_not(catalog, file_format, missing):
    members = "ROW<x INT NOT NULL, y ROW<z STRING NOT NULL>, w ROW<z STRING NOT NULL> NOT NULL>"
    table = catalog.create_table(
        "shop.orders", [("k", "INT"), ("r", members)], options={"file.format": file_format}
    )
    rows = pa.table({"k": pa.array([1], pa.int32())})
    value = None
    if not missing:
        value = {"x": 1, "y": None, "w": {"z": "a"}}
        kind = table.schema.arrow_schema().field("r").type
        rows = pa.concat_tables(
            [rows, pa.table({"k": rows["k"], "r": pa.array([value], kind)})],
            promote_options="default",
        )
    table.write(rows)
    found = table.scan().to_arrow()["r"].to_pylist()
    assert found == ([None] if missing else [None, value])


NO_NAMES = [["x"], ("x",), {"x": 1}, b"x", 3, None, True]
NO_LISTS = ["x", b"x", {"x": 1}, 3, None]


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda table, name: table.tags.delete(name), "tag names must be str"),
        (
            lambda table, name: table.tags.delete("a", name, missing_ok=True),
            "tag names must be str",
        ),
        (lambda table, name: table.tags.rename("a", name), "a tag name must be a str"),
        (lambda table, name: table.branches.delete(name), "a branch name must be a str"),
        (lambda table, name: table.branches.rename("b", name), "a branch name must be a str"),
        (lambda table, name: table.branches.fast_forward(name), "a branch name must be a str"),
        (lambda table, name: table.consumers.clear(including=name), "must be a regular expression"),
        (
            lambda table, name: table.staged.address(name),
            "a staged result must be a str",
        ),
        (lambda table, name: table.system_table(name), "must be text"),
        (lambda table, name: table.rollback(tag=name or 0), "tag must be a str"),
    ],
)
def test_a_name_that_is_no_text_is_refused_and_nothing_goes(catalog, ask, named, name):
    table = catalog.create_table("shop.orders", [("a", "INT")])
    table.write(pa.table({"a": pa.array([1], pa.int32())}))
    table.tags.create("a")
    table.branches.create("b")
    with pytest.raises(lake.InvalidRequestError, match=named) as refused:
        ask(table, name)
    assert repr(name or 0) in str(refused.value) or repr(name) in str(refused.value)
    assert [tag.name for tag in table.tags.list()] == ["a"]
    assert [branch.name for branch in table.branches.list()] == ["b"]


def test_names_given_as_a_list_are_refused_with_the_way_to_write_them(catalog):
    table = catalog.create_table("shop.orders", [("a", "INT")])
    with pytest.raises(lake.InvalidRequestError) as refused:
        table.tags.delete(["x"])
    said = str(refused.value)
    assert said.startswith(f"cannot delete a tag of {table.location}")
    assert said.endswith("Pass each name as a separate argument: delete('a', 'b')")


@pytest.mark.parametrize("value", NO_LISTS)
@pytest.mark.parametrize(
    "ask",
    [
        lambda table, value: table.staged.publish(value),
        lambda table, value: table.plan_drop_partitions(value),
        lambda table, value: table.drop_partitions(value),
        lambda table, value: table.mark_partitions_done(value),
        lambda table, value: table.remove_orphans(in_use=value),
    ],
)
def test_what_is_no_list_is_refused_where_one_is_needed(catalog, ask, value):
    table = catalog.create_table("shop.orders", [("a", "INT"), ("b", "INT")], partition_by=["b"])
    with pytest.raises(lake.InvalidRequestError):
        ask(table, value)


@pytest.mark.parametrize("value", ["run-7", ("run", 7), 3, {"user": "run"}])
@pytest.mark.parametrize(
    "ask",
    [
        lambda table, value: table.find_commit(value),
        lambda table, value: table.staged.find(value),
        lambda table, value: table.staged.add([], commit=value),
        lambda table, value: table.analyze(commit=value),
        lambda table, value: table.stream_batch(value).__enter__(),
        lambda table, value: table.commit([], commit=value),
        lambda table, value: table.truncate(commit=value),
    ],
)
def test_what_is_no_commit_id_is_refused_with_an_example_of_one(catalog, ask, value):
    table = catalog.create_table("shop.orders", [("a", "INT")])
    table.write(pa.table({"a": pa.array([1], pa.int32())}))
    with pytest.raises(lake.InvalidRequestError, match=r"CommitId\('run-7', 0\)"):
        ask(table, value)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda table: table.write(ROW, overwrit="table"), "write .* mean 'overwrite'"),
        (lambda table: table.write(ROW, mode="append"), "'mode': rows are added by default; over"),
        (lambda table: table.update("a = 1", sett={"a": 2}), "update .* mean 'set'"),
        (lambda table: table.update("a = 1", {"aa": 2}), r"columns are a; did you mean 'a'"),
        (lambda table: table.delete(wher="a = 1"), "delete .* mean 'where'"),
        (lambda table: table.scan(colums=["a"]), "scan .* mean 'columns'"),
        (lambda table: table.changes(0, up_to=1), "changes .* mean 'upto'"),
        (lambda table: table.compact(stratgy="full"), "compact .* mean 'strategy'"),
        (lambda table: table.remove_orphans(dryrun=True), "remove_orphans .* mean 'dry_run'"),
        (lambda table: table.expire_snapshots(retain=1), "expire_snapshots .* mean 'retain_min'"),
        (lambda table: table.other_compactor(user=1), "'user': it takes no arguments"),
    ],
)
@pytest.mark.parametrize("table_format", ["paimon", "iceberg"])
def test_a_misspelled_argument_gets_the_nearest_one(tmp_path, table_format, call, told):
    catalog = lake.open_catalog(str(tmp_path), format=table_format)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("a", "INT")])
    with pytest.raises(lake.InvalidRequestError, match=told):
        call(table)
    assert table.latest_snapshot() is None
