"""``lake scan``, ``changes`` and ``write``: rows out of a table and back, in every form."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli import progress
from lakeformat.cli.app import app

COLUMNS = [
    ("k", "INT"),
    ("v", "STRING"),
    ("price", "DECIMAL(6, 2)"),
    ("dt", "DATE"),
    ("clock", "TIME(3)"),
    ("at", "TIMESTAMP(3)"),
    ("flag", "BOOLEAN"),
    ("d", "DOUBLE"),
]
NOTHING = '"price": null, "dt": null, "clock": null, "at": null, "d": null'
LINES = [
    '{"k": 1, "v": "a", "price": "1.50", "dt": "2024-01-31", "clock": "10:00:00", '
    '"at": "2024-01-31 10:00:00.123", "flag": true, "d": 0.1}',
    f'{{"k": 2, "v": "", "flag": null, {NOTHING}}}',
    f'{{"k": 3, "v": null, "flag": false, {NOTHING}}}',
]


class Warehouse:
    """A table of every flat type, one like it, and files beside them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        catalog = lake.open_catalog(str(root / "wh"))
        catalog.create_database("shop")
        for name in ("orders", "copy"):
            catalog.create_table(
                f"shop.{name}", COLUMNS, primary_key=["k"], options={"bucket": "1"}
            )
        self.catalog = catalog
        self.file("in.json", "\n".join(LINES) + "\n")

    def file(self, name: str, content: str | None = None) -> str:
        path = self.root / name
        if content is not None:
            path.write_text(content)
        return str(path)

    def run(self, *words: str) -> str:
        shown = CliRunner().invoke(app, ["--warehouse", str(self.root / "wh"), *words])
        if shown.exception is not None and not isinstance(shown.exception, SystemExit):
            raise shown.exception
        assert shown.exit_code == 0, shown.output
        return shown.stdout

    def rows(self, table: str = "shop.orders") -> list[dict]:
        return self.catalog.table(table).scan().to_arrow().to_pylist()


@pytest.fixture
def warehouse(tmp_path) -> Warehouse:
    found = Warehouse(tmp_path)
    assert found.run("write", "shop.orders", found.file("in.json")) == (
        "3 rows: published as snapshot 1\n"
    )
    return found


@pytest.mark.parametrize("end", ["csv", "json", "parquet"])
def test_what_is_written_into_a_file_is_read_back_the_same(warehouse, end):
    path = warehouse.file(f"out.{end}")
    assert warehouse.run("scan", "shop.orders", "--output", path) == ""
    warehouse.run("write", "shop.copy", path)
    assert warehouse.rows("shop.copy") == warehouse.rows()
    assert sorted(p.name for p in warehouse.root.glob("out*")) == [f"out.{end}"]


def printed_without_pandas(*commands: list[str]) -> list[str]:
    """The output of each command; all of them run in one fresh Python, which has no pandas."""
    code = f"""
import contextlib, sys
from lakeformat.cli import main
for words in {commands!r}:
    sys.argv[1:] = words
    with contextlib.suppress(SystemExit):
        main()
    print(chr(0), end="")
assert "pandas" not in sys.modules"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return shown.stdout.split("\0")[:-1]


def test_times_that_python_does_not_have_are_text(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    columns = {
        "day": "DATE",
        "ats": "ARRAY<TIMESTAMP(9)>",
        "days": "MAP<DATE, DATE>",
        "part": "ROW<at TIMESTAMP_LTZ(3)>",
    }
    table = catalog.create_table("shop.t", [*columns.items()])
    schema = table.scan().schema
    late = 2_932_902  # days
    values = [late, [1], [(late, -719_166)], {"at": 1}]
    rows = [
        pa.array([value, None], kind).cast(field.type)
        for value, kind, field in zip(
            values,
            [
                pa.int32(),
                pa.list_(pa.int64()),
                pa.map_(pa.int32(), pa.int32()),
                pa.struct([("at", pa.int64())]),
            ],
            schema,
            strict=True,
        )
    ]
    table.write(pa.table(rows, schema=schema))
    words = [["scan", "shop.t"], ["changes", "shop.t", "--after", "0"]]
    shown = printed_without_pandas(
        *(["-w", str(tmp_path), *each, *form] for each in words for form in (["--json"], []))
    )
    assert len(shown) == 4
    for lines, table in zip(shown[::2], shown[1::2], strict=True):
        first, second = map(json.loads, lines.splitlines())
        assert {name: first[name] for name in columns} == {
            "day": "10000-01-06",
            "ats": ["1970-01-01 00:00:00.000000001"],
            "days": [["10000-01-06", "0000-12-28"]],
            "part": {"at": "1970-01-01 00:00:00.001Z"},
        }
        assert {name: second[name] for name in columns} == dict.fromkeys(columns)
        assert '["1970-01-01 00:00:00.000000001"]' in table


@pytest.mark.parametrize("type", ["ARRAY<TIMESTAMP(3)>", "ROW<at TIMESTAMP_LTZ(3)>"])
def test_times_in_nested_values_are_read_back(warehouse, type):
    for name in ("notes", "others"):
        warehouse.catalog.create_table(f"shop.{name}", [("v", type)])
    nested = [1] if type.startswith("ARRAY") else {"at": 1}
    table = warehouse.catalog.table("shop.notes")
    [kind] = table.scan().schema.types
    number = pa.list_(pa.int64()) if type.startswith("ARRAY") else pa.struct([("at", pa.int64())])
    table.write(pa.table({"v": pa.array([nested, None], number).cast(kind)}))
    path = warehouse.file("notes.json")
    warehouse.run("scan", "shop.notes", "--output", path)
    warehouse.run("write", "shop.others", path)
    assert warehouse.rows("shop.others") == warehouse.rows("shop.notes")


@pytest.mark.parametrize("values", [["x", None, ""], ["x", None], [None], [None, None], []])
def test_nulls_of_a_csv_file_with_one_column_are_read_back(warehouse, values):
    for name in ("notes", "others"):
        warehouse.catalog.create_table(f"shop.{name}", [("note", "STRING")])
    table = warehouse.catalog.table("shop.notes")
    table.write(pa.table({"note": pa.array(values, pa.string())}))
    path = warehouse.file("notes.csv")
    warehouse.run("scan", "shop.notes", "--output", path)
    warehouse.run("write", "shop.others", path)
    assert [row["note"] for row in warehouse.rows("shop.others")] == values


def test_milliseconds_of_a_time_of_day_are_read_back(warehouse):
    for name in ("notes", "others"):
        warehouse.catalog.create_table(f"shop.{name}", [("v", "TIME(3)")])
    line = '{"v": "10:00:00.500"}\n'
    warehouse.run("write", "shop.notes", warehouse.file("notes.json", line))
    path = warehouse.file("out.json")
    warehouse.run("scan", "shop.notes", "--output", path)
    assert Path(path).read_text() == line
    warehouse.run("write", "shop.others", path)
    assert warehouse.rows("shop.others") == warehouse.rows("shop.notes")


def test_json_is_one_object_per_line(warehouse):
    asked = ["scan", "shop.orders", "--columns", "k, at,price"]
    shown = warehouse.run(*asked, "--format", "json")
    assert warehouse.run(*asked, "--json") == shown
    assert [json.loads(line) for line in shown.splitlines()] == [
        {"k": 1, "at": "2024-01-31 10:00:00.123", "price": "1.50"},
        {"k": 2, "at": None, "price": None},
        {"k": 3, "at": None, "price": None},
    ]


def test_people_see_rows_in_columns_with_headings(warehouse):
    shown = warehouse.run("scan", "shop.orders", "--columns", "k,v,flag", "--where", "k < 3")
    assert [line.split() for line in shown.splitlines()] == [
        ["k", "v", "flag"],
        ["1", "a", "true"],
        ["2"],
    ]
    assert warehouse.run("scan", "shop.orders", "--where", "k > 9") == "no rows\n"
    assert len(warehouse.run("scan", "shop.orders", "--limit", "1").splitlines()) == 2


def test_people_see_a_hundred_rows_and_that_there_are_more(tmp_path):
    warehouse = Warehouse(tmp_path)
    table = warehouse.catalog.table("shop.orders")
    table.write(pa.table({"k": pa.array(range(150), pa.int32())}))
    words = ["--warehouse", str(tmp_path / "wh"), "scan", "shop.orders", "--columns", "k"]
    shown = CliRunner().invoke(app, words)
    assert len(shown.stdout.splitlines()) == 101
    assert "the first 100 rows: --limit N shows more" in shown.stderr
    assert len(warehouse.run("scan", "shop.orders", "--limit", "150").splitlines()) == 151


def test_who_waits_for_a_changelog_hears_what_makes_it(warehouse):
    options = {"bucket": "1", "changelog-producer": "lookup"}
    warehouse.catalog.create_table("shop.stock", [("k", "INT")], primary_key=["k"], options=options)
    warehouse.run("write", "shop.stock", warehouse.file("rows.csv", "k\n1\n"))
    words = ["-w", str(warehouse.root / "wh"), "changes", "shop.stock", "--after", "0"]
    shown = CliRunner().invoke(app, words)
    assert shown.stdout == "no rows\n"
    assert shown.stderr.endswith("to bring it up to date: lake changelog shop.stock\n")
    warehouse.run("changelog", "shop.stock")
    assert CliRunner().invoke(app, words).stderr == ""


def test_changes_have_their_kinds_and_can_be_written_elsewhere(warehouse):
    kinds = warehouse.file("kinds.csv", "k,op\n1,-D\n7,+I\n")
    warehouse.run("write", "shop.orders", kinds, "--kinds", "op")
    shown = warehouse.run(
        "changes", "shop.orders", "--after", "1", "--columns", "k", "--format", "csv"
    )
    assert shown == '"rowkind","k"\n"-D",1\n"+I",7\n'
    path = warehouse.file("changes.parquet")
    warehouse.run("changes", "shop.orders", "--after", "0", "--upto", "2", "--output", path)
    warehouse.run("write", "shop.copy", path, "--kinds", "rowkind")
    assert warehouse.rows("shop.copy") == warehouse.rows()


@pytest.mark.parametrize("format", ["paimon", "iceberg"])
@pytest.mark.parametrize("names", [("2024-01-31", "2024-02-01"), ("20240131", "20240201")])
def test_changes_between_tags_that_look_like_times_or_numbers(tmp_path, format, names):
    catalog = lake.open_catalog(str(tmp_path), format=format)
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", [("id", "BIGINT")], primary_key=["id"])
    for number, name in enumerate(names):
        table.write(pa.table({"id": [number]}))
        table.tags.create(name)
    table.write(pa.table({"id": [2]}))
    words = ["-w", str(tmp_path), "--format", format, "changes", "shop.t", "--columns", "id"]
    after = [*words, "--format", "csv", "--after"]
    header = '"rowkind","id"\n'
    shown = CliRunner().invoke(app, [*after, names[0], "--upto", names[1]]).stdout
    assert shown == f'{header}"+I",1\n'
    assert CliRunner().invoke(app, [*after, names[1]]).stdout == f'{header}"+I",2\n'
    shown = CliRunner().invoke(app, [*after, "2024-01-30", "--upto", "2100-01-01"]).stdout
    assert len(shown.splitlines()) == 4


@pytest.mark.parametrize("name", ["2024-01-31", "20240131"])
def test_changes_after_a_branch_that_looks_like_a_time_or_a_number(tmp_path, name):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", [("id", "BIGINT")], primary_key=["id"])
    table.write(pa.table({"id": [1]}))
    table.branches.create(name)
    table.write(pa.table({"id": [2]}))
    words = ["-w", str(tmp_path), "--format", "iceberg", "changes", "shop.t", "--columns", "id"]
    words += ["--format", "csv", "--after"]
    header = '"rowkind","id"\n'
    assert CliRunner().invoke(app, [*words, name]).stdout == f'{header}"+I",2\n'
    assert CliRunner().invoke(app, [*words, "0", "--upto", name]).stdout == f'{header}"+I",1\n'


def test_a_branch_of_a_paimon_table_is_not_read_in_place_of_a_time(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", [("id", "BIGINT")])
    table.write(pa.table({"id": [1]}))
    table.branches.create("2024-01-31", snapshot=1)
    words = ["-w", str(tmp_path), "changes", "shop.t", "--format", "csv", "--after", "2024-01-31"]
    assert CliRunner().invoke(app, words).stdout == '"rowkind","id"\n"+I",1\n'


def test_time_travel_and_the_tables_beside_a_table(warehouse):
    warehouse.run("write", "shop.orders", warehouse.file("more.csv", "k\n9\n"))
    assert "9" not in warehouse.run("scan", "shop.orders", "--snapshot", "1", "--columns", "k")
    assert "9" in warehouse.run("scan", "shop.orders", "--as-of", "2100-01-01", "--columns", "k")
    assert warehouse.run("scan", "shop.orders$audit_log", "--limit", "1").startswith("rowkind")
    assert warehouse.run("scan", "shop.orders$ro") == "no rows\n"


@pytest.mark.parametrize("what", ["table", "all"])
def test_rows_are_put_in_place_of_others(warehouse, what):
    one = warehouse.file("one.csv", "k,v\n5,z\n")
    report = json.loads(warehouse.run("write", "shop.orders", one, "--overwrite", what, "--json"))
    assert (report[0]["kind"], report[0]["rows"]) == ("OVERWRITE", 1)
    assert [row["k"] for row in warehouse.rows()] == [5]


@pytest.mark.parametrize(
    ("words", "error", "told"),
    [
        (["scan", "shop.orders", "--where", "nix = 1"], lake.InvalidRequestError, "'nix'"),
        (["scan", "shop.orders", "--format", "xml"], lake.InvalidRequestError, "one of table"),
        (["scan", "shop.orders", "--format", "parquet"], lake.InvalidRequestError, "--output"),
        (
            ["scan", "shop.orders", "--output", "rows"],
            lake.InvalidRequestError,
            "use a name that ends in",
        ),
        (
            ["scan", "shop.orders", "--format", "table", "--output", "x"],
            lake.InvalidRequestError,
            "choose",
        ),
        (
            ["scan", "shop.orders", "--format", "csv", "--json"],
            lake.InvalidRequestError,
            "--json and --format csv exclude each other",
        ),
        (["scan", "shop.orders$files"], lake.InvalidRequestError, "`lake files shop.orders`"),
        (["scan", "shop.orders", "--snapshot", "9"], lake.NotFoundError, "only snapshot 1 exists"),
        (
            ["changes", "shop.orders", "--after", "5"],
            lake.NotFoundError,
            "changes of snapshot 1, so",
        ),
        (["changes", "shop.orders", "--after", "v1"], lake.NotFoundError, "no tag 'v1'"),
        (
            ["write", "shop.orders", "/dev/null"],
            lake.InvalidRequestError,
            "use a name that ends in",
        ),
        (["write", "shop.orders", "/"], lake.InvalidRequestError, "/ is a directory"),
        (
            ["write", "shop.orders", "in.json", "--overwrite", "dt"],
            lake.InvalidRequestError,
            "--overwrite 'dt' is unknown",
        ),
        (
            ["write", "shop.orders", "in.json", "--overwrite", "dt=2024-01-31,dt=2024-02-01"],
            lake.InvalidRequestError,
            "column 'dt' has two values: name the column once",
        ),
        (
            ["write", "shop.orders", "in.json", "--columns", "k=a", "--columns", "k=b"],
            lake.InvalidRequestError,
            "column 'k' has two values",
        ),
    ],
)
def test_what_cannot_be_is_refused(warehouse, words, error, told):
    with pytest.raises(error, match=told):
        warehouse.run(*words)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bad.csv", "k,v\nx,y\n"),
        ("bad.json", '{"k": "x"}\n'),
        ("bad.parquet", "no parquet"),
        ("bad.json", '{"k": 1, "dt": "2024-02-30"}\n'),
        ("bad.csv", "k,price\n1,1.005\n"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_nothing_is_written(warehouse, name, content):
    with pytest.raises(lake.InvalidRequestError, match=name):
        warehouse.run(
            "write", "shop.orders", warehouse.file("in.json"), warehouse.file(name, content)
        )
    assert warehouse.catalog.table("shop.orders").latest_snapshot().id == 1


def test_lists_go_through_json_and_parquet_and_are_refused_in_csv(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.t", [("k", "INT"), ("tags", "ARRAY<STRING>"), ("raw", "BYTES")]
    )
    table.write(pa.table({"k": pa.array([1], pa.int32()), "tags": [["x"]], "raw": [b"\xff"]}))
    run = ["--warehouse", str(tmp_path / "wh"), "scan", "shop.t", "--format"]
    assert json.loads(CliRunner().invoke(app, [*run, "json"]).stdout)["tags"] == ["x"]
    refused = CliRunner().invoke(app, [*run, "csv"]).exception
    assert "CSV cannot hold column 'tags' of type list<element: string>" in str(refused)
    path = str(tmp_path / "raw.json")
    Path(path).write_text('{"k": 1, "raw": "AA=="}\n')
    refused = CliRunner().invoke(
        app, ["--warehouse", str(tmp_path / "wh"), "write", "shop.t", path]
    )
    assert "JSON cannot hold column 'raw' of type BYTES" in str(refused.exception)


@pytest.mark.parametrize("form", ["paimon", "iceberg"])
def test_a_null_row_of_a_json_file_is_written_although_a_member_is_not_null(tmp_path, form):
    catalog = lake.open_catalog(str(tmp_path / "lake"), format=form)
    catalog.create_database("shop")
    columns = [("k", "INT"), ("st", "ROW<a INT NOT NULL>"), ("l", "ARRAY<ROW<a INT NOT NULL>>")]
    table = catalog.create_table("shop.t", columns)
    path = tmp_path / "rows.json"
    path.write_text('{"k": 1}\n{"k": 2, "st": null, "l": [null, {"a": 1}]}\n')
    runner = CliRunner()
    assert runner.invoke(app, ["write", table.location, str(path)]).exit_code == 0
    rows = sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())
    assert rows == [(1, None, None), (2, None, [None, {"a": 1}])]
    path.write_text('{"k": 3, "st": null}\n{"k": 4, "st": {}}\n')
    refused = str(runner.invoke(app, ["write", table.location, str(path)]).exception)
    assert "column 'st' does not fit" in refused
    number = {"paimon": "2 (rows count from 1", "iceberg": "1 (rows count from 0"}[form]
    assert f"the first refused value is in row {number}" in refused


def test_a_failed_read_leaves_no_file(warehouse):
    [data] = Path(warehouse.root / "wh" / "shop.db" / "orders" / "bucket-0").glob("data-*")
    data.unlink()
    kept = warehouse.file("kept.parquet")
    pq.write_table(pa.table({"a": [1]}), kept)
    with pytest.raises(lake.CorruptTableError, match=data.name):
        warehouse.run("scan", "shop.orders", "--output", kept)
    assert pq.read_table(kept).to_pydict() == {"a": [1]}
    assert not list(warehouse.root.glob("*.part"))


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_pipe_gets_the_rows_and_remains_a_pipe(warehouse, form):
    pipe = warehouse.file("pipe")
    os.mkfifo(pipe)
    asked = ["scan", "shop.orders", "--columns", "k", "--format", form, "--output"]
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        try:
            warehouse.run(*asked, pipe)
            assert Path(pipe).is_fifo()
            content, _ = reader.communicate(timeout=60)
        finally:
            reader.kill()
    warehouse.run(*asked, warehouse.file("out"))
    assert content == Path(warehouse.file("out")).read_bytes()


def test_a_link_is_followed_and_files_with_similar_names_are_kept(warehouse):
    warehouse.file("real.csv", "old")
    warehouse.file("real.csv.part", "mine")
    link = Path(warehouse.file("link.csv"))
    link.symlink_to("real.csv")
    warehouse.run("scan", "shop.orders", "--columns", "k", "--output", str(link))
    assert link.is_symlink()
    assert Path(warehouse.file("real.csv")).read_text() == '"k"\n1\n2\n3\n'
    assert Path(warehouse.file("real.csv.part")).read_text() == "mine"


@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/stderr"])
@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_file_behind_a_stream_keeps_its_content(warehouse, capfd, place, form):
    """The capture redirects the streams to files."""
    stream = 2 if place == "/dev/stderr" else 1
    os.write(stream, b"before\n")
    asked = ["scan", "shop.orders", "--columns", "k", "--format", form, "--output"]
    warehouse.run(*asked, place)
    os.write(stream, b"after\n")
    warehouse.run(*asked, warehouse.file("out"))
    rows = Path(warehouse.file("out")).read_text()
    assert capfd.readouterr()[stream - 1] == f"before\n{rows}after\n"


def test_an_output_can_have_the_longest_name(warehouse):
    output = warehouse.file("o" * 251 + ".csv")
    warehouse.run("scan", "shop.orders", "--columns", "k", "--output", output)
    assert Path(output).read_text() == '"k"\n1\n2\n3\n'


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "tells"), [(Terminal(), True), (io.StringIO(), False)])
def test_progress_is_for_terminals(monkeypatch, stream, tells):
    monkeypatch.setattr(progress.sys, "stderr", stream)
    batches = pa.table({"k": range(5)}).to_batches(2)
    assert list(progress.progressing(iter(batches), "reading")) == batches
    assert ("reading" in stream.getvalue()) is tells


def test_rows_of_a_watermark_are_those_of_the_first_snapshot_that_reached_it(warehouse):
    table = warehouse.catalog.table("shop.copy")
    for key, watermark in [(1, 500), (2, 900)]:
        table.write(pa.table({"k": pa.array([key], pa.int32())}), watermark=watermark)
    shown = warehouse.run(
        "scan", "shop.copy", "--watermark", "400", "--format", "csv", "--columns", "k"
    )
    assert shown == '"k"\n1\n'


def test_rows_for_a_table_that_is_not_there_say_how_to_make_it(warehouse):
    with pytest.raises(
        lake.NotFoundError, match=r"lake -w \S+ create-table shop\.no --column 'id BIGINT'"
    ):
        warehouse.run("write", "shop.no", warehouse.file("in.json"))


@pytest.mark.parametrize(
    ("missing", "command"),
    [
        ("shop.copy$branch_dev", r"lake -w \S+ branch create shop\.copy dev"),
        ("shop.no$branch_dev", r"lake -w \S+ create-table shop\.no --column"),
    ],
)
def test_rows_for_a_branch_that_is_not_there_say_what_has_to_be_made(warehouse, missing, command):
    with pytest.raises(lake.NotFoundError, match=f"first.*: {command}"):
        warehouse.run("write", missing, warehouse.file("in.json"))


def test_rows_for_a_missing_directory_name_no_command_that_takes_only_names(warehouse):
    with pytest.raises(lake.NotFoundError) as error:
        warehouse.run("write", "./missing/table", warehouse.file("in.json"))
    assert "create-table" not in str(error.value)


def test_rows_for_a_listed_table_without_files_do_not_ask_to_create_it(tmp_path):
    named = {"metastore": "jdbc", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    catalog = lake.open_catalog(str(tmp_path), **named)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "INT")])
    shutil.rmtree(tmp_path / "shop.db" / "orders")
    (tmp_path / "in.json").write_text('{"id": 1}')
    options = ["-w", str(tmp_path), "--metastore", "jdbc", "--uri", named["uri"]]
    shown = CliRunner().invoke(app, [*options, "write", "shop.orders", str(tmp_path / "in.json")])
    assert isinstance(shown.exception, lake.NotFoundError)
    assert "lake repair" in str(shown.exception) or "catalog.repair" in str(shown.exception)
    assert "create it first" not in str(shown.exception)
