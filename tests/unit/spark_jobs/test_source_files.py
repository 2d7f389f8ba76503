"""Finding and reading source files: what cannot be read exactly is refused."""

import bz2
import gzip
import json
import uuid
from datetime import date, time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.files.foreign import change_messages, dialect, text_checks
from lakeformat.files.foreign.rows import read_rows
from lakeformat.storage import open_storage
from spark_jobs import ingest
from spark_jobs.ingestion.remote_files import opener_of
from spark_jobs.ingestion.source_files import find_paths, find_source, find_states
from spark_jobs.job_requests import ingest as ingest_request


def read_files(paths, source_format, columns):
    for path in paths:
        yield from read_rows(path, source_format, columns, opener=opener_of(path, None))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "b.csv").write_text("id,note\n1,x\n")
    (tmp_path / "a.csv").write_text("id,note\n2,y\n")
    return tmp_path


def test_files_are_read_by_name_and_markers_are_no_data(folder):
    (folder / "_SUCCESS").touch()
    (folder / ".a.csv.crc").touch()

    source = find_source(f"{folder}/*", None)

    assert source.format == "csv"
    assert [path.rpartition("/")[2] for path in source.paths] == ["a.csv", "b.csv"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("**/*.csv", ["_day=1/d.csv", "a.csv", "b.csv", "east/e.csv"]),
        ("/**//*.csv", ["_day=1/d.csv", "a.csv", "b.csv", "east/e.csv"]),
        ("**/_temporary/**/*.csv", ["_temporary/0/t.csv"]),
        ("*/0/*.csv", ["_temporary/0/t.csv"]),
        ("_temporary/**/*.csv", ["_temporary/0/t.csv"]),
        ("**/**/e.csv", ["east/e.csv"]),
    ],
)
def test_two_stars_do_not_match_directories_of_unfinished_files(folder, pattern, found):
    for name in ("_temporary/0/t.csv", "_day=1/d.csv", "east/e.csv"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("id,note\n3,z\n")

    assert find_source(f"{folder}/{pattern}", None).paths == tuple(f"{folder}/{x}" for x in found)


@pytest.mark.parametrize("pattern", ["_a.csv", "_*"])
def test_an_error_about_ignored_files_names_the_reason(folder, pattern):
    (folder / "_a.csv").touch()

    with pytest.raises(lake.NotFoundError, match=r"matches no file: .*'_a\.csv', are ignored"):
        find_source(f"{folder}/{pattern}", None)


def test_a_file_uri_names_a_file(folder):
    assert find_source(f"file://{folder}/a.csv", None).paths == (f"{folder}/a.csv",)


def test_a_path_with_brackets_names_a_file(folder):
    (folder / "a[1].csv").write_text("id\n1\n")

    assert find_source(f"{folder}/a[1].csv", None).paths == (f"{folder}/a[1].csv",)


def test_times_of_day_in_json_are_texts_as_in_csv(tmp_path):
    columns = pa.schema([("id", pa.int64()), ("at", pa.time32("ms"))])
    path = tmp_path / "a.json"
    path.write_text('{"at": "10:00:00.5", "id": 1}\n{"id": 2}\n{"at": "09:30"}\n')
    found = pa.Table.from_batches(read_files([str(path)], "json", columns))
    assert found["at"].to_pylist() == [time(10, 0, 0, 500000), None, time(9, 30)]

    path.write_text('{"at": "10:00:00.123456"}\n')
    with pytest.raises(lake.InvalidRequestError, match=r"10:00:00\.123456"):
        list(read_files([str(path)], "json", columns))


@pytest.mark.parametrize("given", [None, "csv"])
def test_a_packed_file_is_looked_at_and_read_as_what_is_in_it(tmp_path, given):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b'id,note\n1,"x\ny"\n'))
    (tmp_path / "b.CSV.GZ").write_bytes(gzip.compress(b"id,note\n") + gzip.compress(b"2,z\n"))
    source = find_source(f"{tmp_path}/*", given)
    columns = source.columns()
    found = pa.Table.from_batches(read_files(source.paths, source.format, columns))
    assert found.to_pylist() == [{"id": 1, "note": "x\ny"}, {"id": 2, "note": "z"}]

    bad = tmp_path / "c.csv.gz"
    bad.write_bytes(gzip.compress(b'id,note\n1,"x\n2,y\n'))
    with pytest.raises(lake.InvalidRequestError, match=rf"{bad}: the quote that opens in line 2"):
        list(read_files([str(bad)], "csv", columns))


@pytest.mark.parametrize("cut", [5, -4])
def test_a_packed_file_that_was_cut_short_is_refused(tmp_path, cut):
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b'{"id": 1}\n' * 100)[:cut])
    with pytest.raises(lake.InvalidRequestError, match=f"cannot read {path}: .*end"):
        find_source(str(path), None).columns()


def test_a_file_packed_in_another_way_is_refused(tmp_path):
    (tmp_path / "a.csv.xz").touch()
    with pytest.raises(
        lake.InvalidRequestError, match=r"a\.csv\.xz has a compression .*: decompress it"
    ):
        find_source(f"{tmp_path}/*", "csv")


@pytest.mark.parametrize(
    ("pattern", "error", "words"),
    [
        ("*.parquet", lake.NotFoundError, "matches no file"),
        ("", lake.InvalidRequestError, r"is a directory: write .*/\* for its files"),
        ("*.txt", lake.InvalidRequestError, ".txt' is unknown: use a name that ends"),
        ("*", lake.InvalidRequestError, ".txt' is unknown: use a name that ends"),
        ("?.*s*", lake.InvalidRequestError, r"several formats \(csv, json\)"),
    ],
)
def test_a_source_that_is_not_clear_is_refused(folder, pattern, error, words):
    (folder / "notes.txt").touch()
    (folder / "c.jsonl").touch()

    with pytest.raises(error, match=words):
        find_source(f"{folder}/{pattern}", None)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (
            "A.csv",
            r"has 2 files with other names; did you mean 'a\.csv'\? Check the path, or let a",
        ),
        ("empty/*.csv", r"/empty has no files\. Check the path"),
        ("2024-*/x.csv", r"has 2 files with other names\. Check the path"),
        ("lost/a.csv", r"the directory .*/lost does not exist\. Check the path"),
    ],
)
def test_a_missing_file_is_refused_with_the_nearest_name_and_what_to_do(folder, pattern, words):
    (folder / "empty").mkdir()
    with pytest.raises(lake.NotFoundError, match=words):
        find_source(f"{folder}/{pattern}", None)


def test_a_missing_relative_path_is_shown_from_its_root(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(lake.NotFoundError) as refused:
        find_source("incoming/a.csv", None)
    assert f"{folder}/incoming does not exist (a relative path begins" in str(refused.value)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("id;note", r"one column, 'id;note': write delimiter=';' if these are 2 columns"),
        ("id,id", "the header has more than one column 'id'"),
        ("id,", "column 2 has no name in the header"),
    ],
)
def test_a_header_that_cannot_name_new_columns_is_refused(tmp_path, header, words):
    (tmp_path / "a.csv").write_text(f"{header}\n1,2\n")
    with pytest.raises(lake.InvalidRequestError, match=rf"a\.csv: .*{words}"):
        find_source(f"{tmp_path}/a.csv", None).columns()


@pytest.fixture
def remote():
    """The address of a folder in another storage, with files."""
    address = f"memory://source-{uuid.uuid4()}"
    storage, root = open_storage(f"{address}/in")
    for path, content in (
        ("2024/a.csv", b"id,note\n1,x\n"),
        ("2024/b.csv", b"id,note\n2,y\n"),
        ("2025/a.csv", b"id,note\n3,z\n"),
        ("2025/_SUCCESS", b""),
        ("2025/bad.jsonl", b'{"id": 1}\n[2]\n'),
    ):
        storage.create(f"{root}/{path}", content)
    return f"{address}/in"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("2024/a.csv", ["2024/a.csv"]),
        ("2024/*", ["2024/a.csv", "2024/b.csv"]),
        ("*/a.csv", ["2024/a.csv", "2025/a.csv"]),
        ("202[45]/?.csv", ["2024/a.csv", "2024/b.csv", "2025/a.csv"]),
    ],
)
def test_files_of_another_storage_are_found_and_read(remote, pattern, found):
    source = find_source(f"{remote}/{pattern}", None)
    columns = source.columns()
    rows = pa.Table.from_batches(read_files(source.paths, "csv", columns))

    assert source.paths == tuple(f"{remote}/{path}" for path in found)
    assert rows.num_rows == len(found)
    assert columns.names == ["id", "note"]


@pytest.mark.parametrize(
    "pattern",
    [
        *("a[1].csv", "[ab]*.csv", "a?.csv", "*.csv", "x[1]/*.csv", "**", "**/*", "**/a?.csv"),
        *("**/*.csv", "x/**/*.csv", "**/**/z.csv", "*/*.csv", "*/*/*.csv", ".hid/*.csv"),
        *("**/_temporary/**/*.csv", "**/*/z.csv", "**/.h*/*.csv", "_temporary/**/*.csv"),
    ],
)
def test_a_glob_finds_the_same_files_in_another_storage_as_on_disk(tmp_path, pattern):
    address = f"memory://source-{uuid.uuid4()}/in"
    storage, root = open_storage(address)
    for name in (
        *("a[1].csv", "a1.csv", "b.csv", "a*.csv", "a?.csv", ".a.csv", "x1/z.csv", "x[1]/z.csv"),
        *("x/z.csv", "x/y/z.csv", "x/y/a1.csv", ".hid/z.csv", ".hid/x/z.csv", "_temporary/0/z.csv"),
        *("x/_temporary/z.csv", "_day=1/z.csv", "x/_day=1/.hid/z.csv", ".day=1/z.csv"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
        storage.create(f"{root}/{name}", b"")

    local = [path.removeprefix(f"{tmp_path}/") for path in find_paths(f"{tmp_path}/{pattern}")]

    assert [p.removeprefix(f"{address}/") for p in find_paths(f"{address}/{pattern}")] == local
    assert list(find_states(f"{address}/{pattern}")) == [f"{address}/{name}" for name in local]


@pytest.mark.parametrize("pattern", ["*/", "*/*.csv/", "**/"])
def test_a_glob_that_ends_with_a_slash_matches_no_file(folder, remote, pattern):
    for place in (folder, remote):
        with pytest.raises(lake.NotFoundError, match="matches no file"):
            find_paths(f"{place}/{pattern}")


def test_a_file_beside_a_directory_of_the_same_name_keeps_its_state(remote):
    """An object store can have both."""
    storage, root = open_storage(remote)
    storage.create(f"{root}/a[1].csv", b"id\n1\n")
    [state] = find_states(f"{remote}/a[[]1].csv").values()
    storage.create(f"{root}/a[1].csv/part", b"")

    assert find_states(f"{remote}/a[1].csv") == {f"{remote}/a[1].csv": state}


@pytest.mark.parametrize("pattern", ["data*/x.csv", "data?/x.csv", "*"])
def test_a_glob_in_the_root_of_hdfs_does_not_match_files_elsewhere(pattern):
    """The root cannot be listed, with a host or without."""
    for place in ("hdfs://", "hdfs://host:8020", "viewfs://"):
        with pytest.raises(lake.InvalidRequestError, match=r"is the root of the file system"):
            find_paths(f"{place}/{pattern}")


@pytest.mark.parametrize("pattern", ["s3://data*/x.csv", "s3://dat[a]/x.csv", "gs://data?/x.csv"])
def test_a_glob_in_the_name_of_a_bucket_does_not_match_files_of_another(pattern):
    with pytest.raises(lake.InvalidRequestError, match=r"has no valid bucket name"):
        find_paths(pattern)


def test_two_stars_list_each_directory_of_another_storage_once(remote, monkeypatch):
    listed = []
    kind = type(open_storage(remote)[0])
    ask = kind.list
    monkeypatch.setattr(kind, "list", lambda self, path: listed.append(path) or ask(self, path))

    assert len(find_paths(f"{remote}/**/*.csv")) == 3
    assert [path.rpartition("/")[2] for path in listed] == ["in", "2024", "2025"]


def test_two_stars_do_not_list_what_a_spark_job_is_writing(remote, monkeypatch):
    storage, root = open_storage(remote)
    for name in ("2024/_temporary/0/x/a.csv", "2024/_day=1/a.csv"):
        storage.create(f"{root}/{name}", b"")
    listed = []
    ask = type(storage).list
    monkeypatch.setattr(
        type(storage), "list", lambda self, path: listed.append(path) or ask(self, path)
    )

    assert len(find_paths(f"{remote}/**/*.csv")) == 4
    assert {path.rpartition("/")[2] for path in listed} == {"in", "2024", "2025", "_day=1"}


def test_what_is_wrong_in_another_storage_is_named_by_its_address(remote):
    with pytest.raises(lake.NotFoundError, match="matches no file"):
        find_source(f"{remote}/2026/*.csv", None)
    with pytest.raises(lake.InvalidRequestError) as refused:
        list(read_files([f"{remote}/2025/bad.jsonl"], "json", pa.schema([("id", pa.int64())])))
    assert f"{remote}/2025/bad.jsonl" in str(refused.value)
    assert "lake-source-" not in str(refused.value)


def test_options_of_a_storage_are_not_shown(remote):
    source = find_source(f"{remote}/2024/*", None, options={"s3.secret-key": "hidden"})
    assert "hidden" not in repr(source)


def test_change_messages_of_another_storage_are_read(remote, tmp_path):
    storage, root = open_storage(remote)
    storage.create(f"{root}/m/1.json", b'{"op": "c", "after": {"id": 7}}\n')
    request = {
        "warehouse": str(tmp_path / "warehouse"),
        "table": "shop.orders",
        "source": f"{remote}/m/*.json",
        "format": "debezium-json",
        "create": True,
    }
    assert ingest.run(request)["report"]["rows"] == 1


def test_the_columns_of_all_files_count(folder):
    (folder / "c.csv").write_text("extra,id\n1.5,3\n")

    columns = find_source(f"{folder}/*.csv", None).columns()

    assert columns == pa.schema(
        [("id", pa.int64()), ("note", pa.string()), ("extra", pa.float64())]
    )


def test_a_column_without_any_value_has_no_type(folder):
    (folder / "c.csv").write_text("id,empty\n1,\n")

    with pytest.raises(lake.InvalidRequestError, match="column 'empty'"):
        find_source(f"{folder}/*.csv", None).columns()


def test_columns_that_contradict_each_other_are_refused(folder):
    (folder / "c.csv").write_text("id\nabc\n")

    with pytest.raises(lake.InvalidRequestError, match="differ in type"):
        find_source(f"{folder}/*.csv", None).columns()


@pytest.mark.parametrize(
    ("value", "column"),
    [
        ("2024-01-31T10:00:00+02:00", pa.timestamp("us")),
        ("2024-01-31T10:00:00", pa.timestamp("us", tz="UTC")),
        ("2024-01-31T10:00:00.123456789", pa.timestamp("us")),
        ("2024-01-31T10:00:00", pa.date32()),
    ],
)
@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_a_time_that_would_lose_its_zone_or_digits_is_refused(tmp_path, file_format, value, column):
    path = tmp_path / "times"
    path.write_text(f"at\n{value}\n" if file_format == "csv" else json.dumps({"at": value}))

    with pytest.raises(lake.InvalidRequestError, match=r"cannot read .*times"):
        list(read_files([str(path)], file_format, pa.schema([("at", column)])))


def test_a_json_field_past_the_first_block_is_not_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(text_checks, "BLOCK_BYTES", 1 << 10)
    path = tmp_path / "a.json"
    lines = [json.dumps({"id": number}) for number in range(1000)]
    path.write_text("\n".join([*lines, '{"id": 1, "late": 2}\n']))

    with pytest.raises(lake.InvalidRequestError, match="row 1001 has a value for 'late'"):
        list(read_files([str(path)], "json", pa.schema([("id", pa.int64())])))


def test_json_knows_text_but_no_times(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"at": "2024-01-31T10:00:00+02:00", "more": {"days": ["2024-01-31"]}}')

    made = find_source(str(path), None).columns()

    days = pa.field("more", pa.struct([("days", pa.list_(pa.string()))]))
    assert made == pa.schema([pa.field("at", pa.string()), days])


def test_a_time_inside_a_json_object_is_read_exactly(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"more": {"days": ["2024-01-31"]}}')
    columns = pa.schema([("more", pa.struct([("days", pa.list_(pa.date32()))]))])

    rows = pa.Table.from_batches(read_files([str(path)], "json", columns))

    assert rows.to_pylist() == [{"more": {"days": [date(2024, 1, 31)]}}]


def test_a_damaged_parquet_file_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    path.write_bytes(path.read_bytes()[:-6])

    with pytest.raises(lake.InvalidRequestError, match=r"cannot read .*a\.parquet"):
        list(read_files([str(path)], "parquet", pa.schema([("id", pa.int64())])))


BEYOND_BIGINT = "9223372036854775808"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ("7\n-5\n0\n\n9223372036854775807", pa.int64()),
        ("1.50\n-.5\n1E5\n\nnan\ninf", pa.float64()),
        ("1\n1.5", pa.float64()),
        ("1\n00701", pa.string()),
        ("+5", pa.string()),
        (" 5", pa.string()),
        ("0x1F", pa.string()),
        (BEYOND_BIGINT, pa.string()),
        ("0.1234567890123456", pa.string()),
        ("9007199254740993\n1.5", pa.string()),
        ("007.5", pa.string()),
        ("1e400", pa.string()),
        ("1e-400", pa.string()),
        ("Nan", pa.string()),
    ],
)
def test_a_csv_column_is_a_number_only_if_it_prints_as_it_is_written(tmp_path, values, kind):
    (tmp_path / "a.csv").write_text(f"a,b\n{values.replace(chr(10), ',x' + chr(10))},x\n")
    source = find_source(f"{tmp_path}/a.csv", None)

    columns = source.columns()
    rows = pa.Table.from_batches(read_files(source.paths, "csv", columns))

    assert columns.field("a").type == kind
    if kind == pa.string():
        assert rows["a"].to_pylist() == values.split("\n")


def test_a_leading_zero_in_any_file_or_block_makes_a_column_text(folder, monkeypatch):
    monkeypatch.setattr(text_checks, "BLOCK_BYTES", 1 << 10)
    lines = "\n".join(f"{number},x" for number in range(1000))
    (folder / "c.csv").write_text(f"id,note\n{lines}\n007,x\n")

    columns = find_source(f"{folder}/*.csv", None).columns()

    assert columns.field("id").type == pa.string()


@pytest.mark.parametrize(
    "value", [BEYOND_BIGINT, f"[1.5, {BEYOND_BIGINT}]", f'{{"x": [{{"y": {BEYOND_BIGINT}}}]}}']
)
def test_a_whole_number_in_json_that_would_be_rounded_is_refused(tmp_path, value):
    (tmp_path / "a.json").write_text(f'{{"a": {value}}}\n')

    with pytest.raises(lake.InvalidRequestError, match=r"column 'a.*holds a number near 9.2"):
        find_source(f"{tmp_path}/a.json", None).columns()


def test_a_whole_number_beside_fractions_in_json_is_not_rounded(tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1.5}\n{"a": 9007199254740993}\n')

    with pytest.raises(lake.InvalidRequestError, match="declare the column first"):
        find_source(f"{tmp_path}/a.json", None).columns()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("value.csv", "a\né\n"),
        ("header.csv", "é\na\n"),
        ("value.json", '{"a": "é"}\n'),
        ("header.json", '{"é": "a"}\n'),
    ],
)
def test_text_that_is_not_utf8_is_refused_by_file_with_what_to_do(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="latin-1")
    source = find_source(f"{tmp_path}/{name}", None)

    with pytest.raises(
        lake.InvalidRequestError,
        match=rf"{name}: it is not UTF-8 .*set encoding to that of the file",
    ):
        list(read_files(source.paths, source.format, source.columns()))
    with pytest.raises(lake.InvalidRequestError, match=name):
        list(read_files(source.paths, source.format, pa.schema([("a", pa.string())])))


@pytest.fixture
def request_for(tmp_path):
    return {"warehouse": str(tmp_path / "wh"), "table": "shop.orders", "create": True}


def test_the_columns_of_a_new_table_come_from_a_file_in_its_dialect(tmp_path, request_for):
    rows = "id;note;sum\n1;é;'1;5'\nNULL;NULL;2\n".encode("latin-1")
    (tmp_path / "a.csv.bz2").write_bytes(bz2.compress(rows))
    dialect = {
        "delimiter": ";",
        "quote": "'",
        "null_values": ["NULL"],
        "encoding": "latin-1",
    }
    ingest.run({**request_for, "source": f"{tmp_path}/*.bz2", **dialect})

    table = lake.open_catalog(request_for["warehouse"]).table("shop.orders")
    assert table.schema.arrow_schema().types == [pa.int64(), pa.string(), pa.string()]
    assert table.scan().to_arrow().to_pylist() == [
        {"id": 1, "note": "é", "sum": "1;5"},
        {"id": None, "note": None, "sum": "2"},
    ]


@pytest.mark.parametrize("block", [None, 5])
@pytest.mark.parametrize(
    ("null", "kind", "values"),
    [("\\N", pa.string(), ["1", "", "2"]), ("", pa.int64(), [1, None, 2])],
)
def test_empty_lines_of_one_new_column_count_for_its_type(
    tmp_path, request_for, monkeypatch, block, null, kind, values
):
    if block is not None:
        monkeypatch.setattr("lakeformat.files.foreign.text_checks.BLOCK_BYTES", block)
    (tmp_path / "a.csv").write_text("n\n1\n\n2\n")
    ingest.run({**request_for, "source": f"{tmp_path}/a.csv", "null_values": [null]})
    rows = lake.open_catalog(request_for["warehouse"]).table("shop.orders").scan().to_arrow()
    assert rows["n"].type == kind
    assert rows["n"].to_pylist() == values


def test_no_table_is_made_of_files_without_a_header(tmp_path, request_for):
    (tmp_path / "a.csv").write_text("1,a\n")
    with pytest.raises(lake.InvalidRequestError, match="have no column names: create the"):
        ingest.run({**request_for, "source": f"{tmp_path}/a.csv", "header": False})


def test_change_messages_are_unpacked_and_decoded(tmp_path, request_for):
    message = '{"op": "c", "after": {"id": 7, "note": "é"}}\n'
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(message.encode("utf-16")))
    given = {"source": f"{tmp_path}/a.json.gz", "format": "debezium-json", "encoding": "utf-16"}
    ingest.run({**request_for, **given})

    table = lake.open_catalog(request_for["warehouse"]).table("shop.orders")
    assert table.scan().to_arrow().to_pylist() == [{"id": 7, "note": "é"}]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"source_table": "shop.a", "consumer": "c", "header": False}, "'header' needs key 'sou"),
        ({"source": "a", "format": "canal-json", "delimiter": ";"}, "delimiter has no meaning"),
        ({"source": "a", "delimiter": "\t", "quote": "\t"}, "must differ"),
        ({"source": "a", "encoding": "klingon"}, "'encoding' must be .*klingon"),
    ],
)
def test_a_dialect_that_means_nothing_is_refused_with_the_request(request_for, keys, words):
    with pytest.raises(lake.InvalidRequestError, match=words):
        ingest.run({**request_for, **keys})


def test_a_request_names_formats_and_dialects_as_the_reader_of_text_files_does():
    """The request repeats them, because a scheduler does not load the library to parse a DAG."""
    assert ingest_request.SourceFormat == dialect.SourceFormat
    assert ingest_request.MessageFormat == change_messages.MessageFormat
    assert ingest_request.Compression == dialect.Compression
    assert ingest_request.DIALECT_NAMES == dialect.DIALECT_NAMES
