"""Files of other programs become the rows they mean, or are refused by row and column."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import lakeformat as lake
from lakeformat.cli.read_row_files import read_rows
from lakeformat.files.foreign.dialect import TextDialect

COLUMNS = [
    ("k", "BIGINT"),
    ("s", "STRING"),
    ("at", "TIMESTAMP(3)"),
    ("moment", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ("clock", "TIME(3)"),
    ("parts", "ARRAY<ROW<at TIMESTAMP(3)>>"),
]


@pytest.fixture
def read(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    schema = catalog.create_table("shop.t", COLUMNS).schema

    def rows(name: str, content: str) -> list[dict]:
        (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
        batches = list(read_rows([str(tmp_path / name)], schema, None))
        return [row for batch in batches for row in batch.to_pylist()]

    return rows


def test_a_line_break_in_quotes_is_part_of_the_value_wherever_blocks_end(read, monkeypatch):
    lines = [f'{k},"{"a" * 20}\n{1000 + k},b"' for k in range(500)]
    expected = [{"k": k, "s": "a" * 20 + f"\n{1000 + k},b"} for k in range(500)]
    content = "k,s\n" + "\n".join(lines) + "\n"
    assert [{"k": row["k"], "s": row["s"]} for row in read("rows.csv", content)] == expected
    monkeypatch.setattr("lakeformat.files.foreign.text_checks.BLOCK_BYTES", 100)
    assert [{"k": row["k"], "s": row["s"]} for row in read("rows.csv", content)] == expected


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("s\na\n\nb\n", ["a", None, "b"]),
        ("s\na\n\n", ["a"]),
        ("s\r\na\r\n\r\n\r\n", ["a", None]),
        ('s\n\n""\n\n\n', [None, "", None]),
        ('s\n"a\n\n"', ["a\n\n"]),
        ("s\n\n", []),
        ("\ns\na\n\nb\n", ["a", "b"]),
        ("s,at\na,\n\nb,\n", ["a", "b"]),
        ("k\n1\n\n2\n", [None, None, None]),
    ],
)
@pytest.mark.parametrize("block", [None, 5])
def test_an_empty_line_is_null_in_a_file_of_one_column(read, monkeypatch, block, content, values):
    """Except as the last line, which many programs write without a meaning."""
    if block is not None:
        monkeypatch.setattr("lakeformat.files.foreign.text_checks.BLOCK_BYTES", block)
    assert [row.get("s") for row in read("rows.csv", content)] == values


def test_an_empty_line_is_no_row_if_null_is_refused(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    needed = catalog.create_table("shop.t", [("s", "STRING NOT NULL")]).schema
    (tmp_path / "rows.csv").write_text("s\na\n\nb\n")
    paths = [str(tmp_path / "rows.csv")]
    assert sum(batch.num_rows for batch in read_rows(paths, needed, None)) == 2
    free = catalog.create_table("shop.u", [("s", "STRING")]).schema
    bare = TextDialect(header=False)
    (tmp_path / "rows.csv").write_text("\n")
    assert sum(batch.num_rows for batch in read_rows(paths, free, None, dialect=bare)) == 0


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("s\n\\N\n\na\n", [None, "", "a"]),
        ("s\r\n\r\n\\N\r\n\r\n", ["", None]),
        ("s\n\n\n", [""]),
        ("s\n\n", []),
        ("s\ra\r\r\r", ["a", ""]),
        ('s\na\n""\n', ["a", ""]),
        ("n\n1\n2\n\n", [1, 2]),
    ],
)
@pytest.mark.parametrize("block", [None, 5])
def test_an_empty_line_is_an_empty_text_if_another_text_is_null(
    tmp_path, monkeypatch, block, content, values
):
    if block is not None:
        monkeypatch.setattr("lakeformat.files.foreign.text_checks.BLOCK_BYTES", block)
    assert values_of_one_column(tmp_path, content) == values


def test_an_empty_line_is_refused_if_the_column_has_no_such_value(tmp_path):
    message = r"row 2, column 'n': '' is not a value of type BIGINT .*add it to null_values"
    with pytest.raises(lake.InvalidRequestError, match=message):
        values_of_one_column(tmp_path, "n\n1\n\n2\n")


def values_of_one_column(tmp_path, content: str) -> list:
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    kind = "STRING" if content.startswith("s") else "BIGINT"
    schema = catalog.create_table("shop.t", [(content[0], kind)]).schema
    (tmp_path / "rows.csv").write_bytes(content.encode())
    dialect = TextDialect(null_values=["\\N"])
    batches = read_rows([str(tmp_path / "rows.csv")], schema, None, dialect=dialect)
    return [value for batch in batches for value in batch[content[0]].to_pylist()]


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("s\na\nb\\\n\n", ["a", "b\n"]),
        ("s\r\na\\\r\n\r\n", ["a\r"]),
        ("s\na\\\n\n\n", ["a\n"]),
    ],
)
def test_an_escaped_line_break_at_the_end_of_a_file_is_part_of_the_value(tmp_path, content, values):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    schema = catalog.create_table("shop.t", [("s", "STRING")]).schema
    (tmp_path / "rows.csv").write_bytes(content.encode())
    dialect = TextDialect(escape="\\")
    rows = list(read_rows([str(tmp_path / "rows.csv")], schema, None, dialect=dialect))
    assert [value for batch in rows for value in batch["s"].to_pylist()] == values


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("at\n\n\nx\n", r"row 3, column 'at': 'x' is not"),
        ("s\na\n\n\nb,c\n", r"row 4 has 2 values for 1 column"),
    ],
)
def test_empty_lines_count_in_the_number_of_a_bad_row(read, content, message):
    with pytest.raises(lake.InvalidRequestError, match=message):
        read("rows.csv", content)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('k,s\n1,"open\n2,b\n', 2),
        ('k,s\n1,"a""b"\n2,"open', 3),
        ('k,s\n1,"""\n2,b\n', 2),
        ('"k,s\n1,a\n', 1),
    ],
)
def test_a_quote_that_is_never_closed_is_refused_by_its_line(read, content, line):
    with pytest.raises(lake.InvalidRequestError, match=f"opens in line {line} is never closed"):
        read("rows.csv", content)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("null\n", 1),
        ('{"k": 1}\n\n null\n{"k": 2}\n', 3),
        ('{"k": 1} null\n', 1),
        ('[{"k": 1}]\n', 1),
        ("7", 1),
    ],
)
def test_a_line_of_json_that_is_no_object_is_refused_by_its_number(read, content, line):
    with pytest.raises(lake.InvalidRequestError, match=rf"line {line}, .* is not a JSON object"):
        read("rows.json", content)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("rows.csv", "k,s\n1,a\nx,b\n", "row 2, column 'k': .*'x'"),
        ("rows.csv", "k,s\n1,\udcff\n", "not UTF-8 .row 1, column 's'.: set"),
        ("rows.csv", "k,moment\n1,2024-01-01 10:00:00\n", "row 1, column 'moment'.*zone offset"),
        (
            "rows.json",
            '{"k": 1}\n{"k": "x"}\n',
            "row 2, column 'k': \"x\" is not a value of type BIGINT",
        ),
        (
            "rows.json",
            '{"k": 1}\n{"at": "2024-02-30 10:00:00"}\n',
            "row 2, column 'at': .* not a value of type TIMESTAMP",
        ),
        (
            "rows.json",
            '{"clock": "25:00:00"}\n',
            "row 1, column 'clock': .* not a value of type TIME",
        ),
    ],
)
def test_what_cannot_be_read_is_told_by_row_and_column(read, name, content, told):
    with pytest.raises(lake.InvalidRequestError, match=f"{name}.*{told}"):
        read(name, content)


def test_rows_are_counted_over_blocks(read, monkeypatch):
    monkeypatch.setattr("lakeformat.files.foreign.text_checks.BLOCK_BYTES", 200)
    with pytest.raises(lake.InvalidRequestError, match="row 101, column 'k'"):
        read("rows.json", '{"k": 1}\n' * 100 + '{"k": "x"}\n')
    with pytest.raises(lake.InvalidRequestError, match="row 101, column 'k'"):
        read("rows.csv", "k\n" + "1\n" * 100 + "x\n")


BAD_FILES = {
    "a null in the key": ("k,price\n1,1\n,2\n", "'k' is NOT NULL.*the first .*in row 2 .*from 1"),
    "an unknown column": ("k,prize\n1,1\n", "no column 'prize'"),
    "no number": ("k,price\n1,1\n2,x\n", "row 2, column 'price': .*'x'.*from 1"),
    "a finer number": ("k,price\n1,1\n2,1.005\n", "row 2, column 'price'"),
    "a larger number": ("k,price\n1,1\n2,200.5\n", "column 'price'.*digits.* row 2"),
    "no kind": ("k,kind\n1,+I\n2,+X\n", r"row 2 has '\+X' in column 'kind'.*from 1"),
    "a column twice": ("k,k\n1,1\n", "k"),
}


@pytest.mark.parametrize("odd", BAD_FILES)
def test_of_several_files_the_bad_one_is_named_and_its_rows_are_its_own(tmp_path, odd):
    catalog = lake.open_catalog("memory://read-files/wh")
    catalog.create_database("shop", exist_ok=True)
    columns = [("k", "INT"), ("price", "DECIMAL(4, 2)")]
    schema = catalog.create_table(
        "shop.keyed", columns, primary_key=["k"], options={"bucket": "1"}, exist_ok=True
    ).schema
    content, told = BAD_FILES[odd]
    kinds = "kind" if "kind" in content else None
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("k,price,kind\n7,1,+I\n8,2,+I\n" if kinds else "k,price\n7,1\n8,2\n")
    second.write_text(content)
    with pytest.raises(lake.InvalidRequestError, match=f"second.csv.*{told}") as refused:
        list(read_rows([str(first), str(second)], schema, kinds))
    assert "first.csv" not in str(refused.value)


def test_a_row_that_an_append_table_cannot_take_is_told_by_its_file(tmp_path, read):
    table = lake.open_catalog(str(tmp_path / "wh")).table("shop.t")
    (tmp_path / "rows.json").write_text('{"k": 1, "what": "+I"}\n{"k": 2, "what": "-D"}\n')
    with pytest.raises(lake.InvalidRequestError, match=r"rows.json: row 2 is -D, .*count from 1"):
        list(read_rows([str(tmp_path / "rows.json")], table.schema, "what"))


def test_no_file_is_read_before_all_of_them_are_found(tmp_path, read):
    schema = lake.open_catalog(str(tmp_path / "wh")).table("shop.t").schema
    (tmp_path / "rows.csv").write_text("k\n1\n")
    (tmp_path / "folder.csv").mkdir()
    away = "s3://bucket/rows.csv"
    for name, state in [
        (tmp_path / "missing.csv", "does not exist"),
        (tmp_path / "folder.csv", "is a directory"),
        (away, "is not on this machine, and `lake write` reads local files only"),
    ]:
        inputs = [str(tmp_path / "rows.csv"), str(name)]
        with pytest.raises(
            lake.InvalidRequestError, match=f"{name} {state}. Nothing was written: name files"
        ):
            next(read_rows(inputs, schema, None))


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        ("at", "2024-01-01 10:00:00", datetime(2024, 1, 1, 10)),
        ("at", "2024-01-01 10:00:00Z", None),
        ("at", "2024-01-01 10:00:00+02:00", None),
        ("moment", "2024-01-01 10:00:00", None),
        ("moment", "2024-01-01 10:00:00Z", datetime(2024, 1, 1, 10, tzinfo=UTC)),
        ("moment", "2024-01-01 10:00:00+02:00", datetime(2024, 1, 1, 8, tzinfo=UTC)),
    ],
)
def test_an_instant_has_a_zone_and_a_wall_clock_has_none(read, form, column, text, value):
    line = json.dumps({column: text}) if form == "json" else f"{column}\n{text}"
    if value is None:
        with pytest.raises(lake.InvalidRequestError, match=f"column '{column}'.*zone"):
            read(f"rows.{form}", line)
    else:
        assert read(f"rows.{form}", line)[0][column] == value


def test_times_inside_lists_and_rows_are_read_the_same(read):
    [row] = read("rows.json", '{"parts": [{"at": "2024-01-01 10:00:00"}]}')
    assert row["parts"] == [{"at": datetime(2024, 1, 1, 10)}]
    with pytest.raises(lake.InvalidRequestError, match=r"column 'parts'.*zone"):
        read("rows.json", '{"parts": [{"at": "2024-01-01 10:00:00Z"}]}')
