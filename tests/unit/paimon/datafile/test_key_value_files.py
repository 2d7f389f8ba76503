"""Files of primary-key tables: options by level and for the changelog, rows in key order."""

from __future__ import annotations

import math
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.datafile.external_paths import TablePlace, external_paths
from lakeformat.paimon.datafile.file_description import FileOrigin
from lakeformat.paimon.datafile.key_value_files import KeyValueFiles
from lakeformat.paimon.datafile.reader import read_key_values
from lakeformat.paimon.datafile.rolling_writer import ROW_GROUP_ROWS
from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.options import TableOptions
from lakeformat.storage.memory import MemoryStorage
from lakeformat.storage.walls import ExternalRoots
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField

LEVELS = {
    "file.format.per.level": "0:avro, 5:orc",
    "file.compression.per.level": "0:snappy,3:lz4",
    "metadata.stats-mode.per.level": "0:none,3:counts",
}


def columns(*named_types):
    return tuple(DataField(n, name, parse_type(t)) for n, (name, t) in enumerate(named_types))


FIELDS = columns(("k", "INT NOT NULL"), ("v", "STRING"))


class Bucket:
    """A bucket in memory."""

    def __init__(self, options=None, fields=FIELDS, keys=("k",)):
        self.storage, self.fields = MemoryStorage(), fields
        typed = TableOptions(options or {})
        typed.validate()
        self.files = KeyValueFiles(
            self.storage,
            "t/bucket-0",
            fields,
            keys,
            typed,
            "u",
            external=external_paths(
                typed,
                "bucket-0",
                TablePlace(
                    self.storage, "memory://t", ExternalRoots.of(typed.data_file_external_paths)
                ),
                lambda: 0.0,
            ),
        )

    def batch(self, rows) -> pa.RecordBatch:
        numbered = [
            {SEQUENCE_NUMBER.name: number, VALUE_KIND.name: 0, **row}
            for number, row in enumerate(rows)
        ]
        schema = to_arrow_schema((SEQUENCE_NUMBER, VALUE_KIND, *self.fields))
        return pa.RecordBatch.from_pylist(numbered, schema=schema)

    def names(self) -> list[str]:
        return [file.name for file in self.storage.list("t/bucket-0")]


def write(writer, *batches, level=0) -> DataFileMeta:
    for batch in batches:
        writer.write(batch)
    [meta] = writer.finish(FileOrigin(0, datetime(2024, 1, 1), level=level))
    return meta


def test_each_level_has_its_own_format_compression_and_statistics():
    bucket = Bucket(LEVELS)
    row = bucket.batch([{"k": 1, "v": "a"}])
    metas = {level: write(bucket.files.new_run(level), row, level=level) for level in (0, 3, 4, 5)}
    assert [meta.file_name for meta in metas.values()] == [
        "data-u-0.avro",
        "data-u-1.parquet",
        "data-u-2.parquet",
        "data-u-3.orc",
    ]
    for level, codec in [(3, "LZ4"), (4, "ZSTD")]:
        content = bucket.storage.read(f"t/bucket-0/{metas[level].file_name}")
        found = pq.read_metadata(pa.BufferReader(content)).row_group(0).column(0).compression
        assert found == codec
    covered = {level: meta.value_stats_cols for level, meta in metas.items()}
    assert covered == {0: (), 3: None, 4: None, 5: None}, "nothing, or every column"
    for meta in metas.values():
        path = f"t/bucket-0/{meta.file_name}"
        [found] = read_key_values(bucket.storage, path, file_fields=FIELDS, wanted=FIELDS)
        assert found.to_pylist() == row.to_pylist()


def test_a_changelog_has_its_own_options_before_those_of_its_level():
    bucket = Bucket({**LEVELS, "changelog-file.format": "parquet", "changelog-file.prefix": "c-"})
    row = bucket.batch([{"k": 1, "v": "a"}])
    write(bucket.files.new_changelog(), row)
    write(Bucket(LEVELS).files.new_changelog(), row)
    assert bucket.names() == ["c-u-0.parquet"]
    plain = Bucket(LEVELS)
    assert write(plain.files.new_changelog(5), row).file_name == "changelog-u-0.orc"


@pytest.mark.parametrize(
    ("setting", "covered"), [("none", ()), ("counts", None), ("truncate(1)", None)]
)
def test_a_changelog_has_its_own_statistics(setting, covered):
    bucket = Bucket({"metadata.stats-mode": "full", "changelog-file.stats-mode": setting})
    meta = write(bucket.files.new_changelog(), bucket.batch([{"k": 1, "v": "ab"}]))
    assert meta.value_stats_cols == covered


def test_the_name_of_a_file_tells_the_compression_of_its_own_level():
    bucket = Bucket({**LEVELS, "file.suffix.include.compression": "true"})
    row = bucket.batch([{"k": 1, "v": "a"}])
    names = [write(bucket.files.new_run(level), row).file_name for level in (0, 3, 4)]
    assert names == ["data-u-0.snappy.avro", "data-u-1.lz4.parquet", "data-u-2.zst.parquet"]


def test_data_and_changelog_files_go_to_external_paths():
    address = f"memory://{id(object())}-external/below"
    bucket = Bucket(
        {
            "data-file.external-paths": address,
            "data-file.external-paths.strategy": "round-robin",
        }
    )
    row = bucket.batch([{"k": 1, "v": "a"}])
    data = write(bucket.files.new_run(0), row)
    changes = write(bucket.files.new_changelog(), row)
    assert data.external_path == f"{address}/bucket-0/data-u-0.parquet"
    assert changes.external_path == f"{address}/bucket-0/changelog-u-1.parquet"
    assert bucket.names() == []


def refused(bucket, writer, *batches, match) -> None:
    with pytest.raises(InvalidRequestError, match=match):
        write(writer, *map(bucket.batch, batches))
    assert bucket.names() == [], "nothing is left behind"


def test_rows_out_of_order_are_refused_by_file_and_row():
    bucket = Bucket()
    rows = [{"k": 1}, {"k": 3}, {"k": 2}]
    refused(
        bucket,
        bucket.files.new_run(0),
        rows,
        match=r"row 2 of memory://.*/t/bucket-0/data-u-0.parquet has the key \(2\) after \(3\)",
    )


def test_the_order_holds_from_batch_to_batch_and_from_file_to_file():
    bucket = Bucket()
    refused(bucket, bucket.files.new_run(1), [{"k": 3}], [{"k": 3}], match=r"row 1 of .*u-0")
    bucket = Bucket({"target-file-size": "1 b"})
    first = [{"k": number} for number in range(ROW_GROUP_ROWS)]
    refused(bucket, bucket.files.new_run(1), first, [{"k": 5}], match=r"row 0 of .*u-1.* \(5\)")


def test_a_key_may_repeat_in_a_changelog_but_not_in_a_data_file():
    rows = [{"k": 1, "v": "before"}, {"k": 1, "v": "after"}, {"k": 2}]
    bucket = Bucket()
    merge = r"row 1 .*\(1\) after \(1\).*each key once: sort and merge them before"
    refused(bucket, bucket.files.new_run(0), rows, match=merge)
    assert write(bucket.files.new_changelog(), bucket.batch(rows)).row_count == 3
    bucket = Bucket()
    sort = (
        "rows with the same key next to each other: sort them by key with a stable sort before they"
    )
    refused(bucket, bucket.files.new_changelog(), rows[::-1], match=sort)


def test_a_key_of_several_columns_is_compared_column_by_column():
    fields = columns(("a", "INT NOT NULL"), ("b", "STRING NOT NULL"))
    good = [(1, "x"), (1, "y"), (2, "a"), (2, "ab"), (3, "")]
    rows = [{"a": a, "b": b} for a, b in good]
    bucket = Bucket(fields=fields, keys=("a", "b"))
    assert write(bucket.files.new_run(0), bucket.batch(rows)).row_count == len(good)
    bucket = Bucket(fields=fields, keys=("a", "b"))
    rows[2]["a"] = 1
    refused(bucket, bucket.files.new_run(0), rows, match=r"row 2 .*\(1, a\) after \(1, y\)")
    bucket = Bucket(fields=fields, keys=("b", "a"))
    refused(bucket, bucket.files.new_run(0), rows, match=r"row 2 of")


def test_a_later_column_of_a_key_decides_only_where_all_before_it_are_equal():
    fields = columns(*((name, "INT NOT NULL") for name in "abc"))
    rows = [dict(zip("abc", key, strict=True)) for key in [(1, 2, 1), (2, 2, 1), (1, 2, 2)]]
    bucket = Bucket(fields=fields, keys=("a", "b", "c"))
    refused(bucket, bucket.files.new_run(0), rows, match=r"row 2 .*\(1, 2, 2\) after \(2, 2, 1\)")


@pytest.mark.parametrize(
    ("type_text", "ascending"),
    [
        ("DOUBLE", [-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan]),
        ("STRING", ["", "A", "Z", "a", "é", "\uffff", "\U0001f600"]),
        ("BYTES", [b"", b"\0", b"\x7f", b"\x80", b"\xff\0"]),
        ("BOOLEAN", [False, True]),
        ("DECIMAL(4, 2)", ["-1.50", "0.00", "1.25"]),
        ("TIMESTAMP(6)", [datetime(1, 1, 1), datetime(1969, 12, 31), datetime(2024, 1, 1)]),
    ],
)
def test_keys_are_in_the_order_of_the_format(type_text, ascending):
    fields = columns(("k", f"{type_text} NOT NULL"))
    arrow_type = to_arrow_schema(fields).field("k").type
    values = pa.array(ascending).cast(arrow_type)

    def batch(keys):
        numbers, kinds = pa.array(range(len(keys))), pa.array([0] * len(keys), pa.int8())
        schema = to_arrow_schema((SEQUENCE_NUMBER, VALUE_KIND, *fields))
        return pa.RecordBatch.from_arrays([numbers, kinds, keys], schema=schema)

    bucket = Bucket(fields=fields)
    assert write(bucket.files.new_run(0), batch(values)).row_count == len(ascending)
    for start in range(len(ascending) - 1):
        pair = values.take(pa.array([start + 1, start]))
        with pytest.raises(InvalidRequestError, match="row 1 of"):
            write(Bucket(fields=fields).files.new_run(0), batch(pair))


def test_a_null_in_a_key_is_refused_by_its_row():
    fields = columns(("k", "INT"), ("v", "STRING"))
    bucket = Bucket(fields=fields)
    refused(bucket, bucket.files.new_run(0), [{"k": 1}, {"k": None}], match=r"row 1 .*\(None\)")
    told = r"row 0 .*\(None\), and a key must not be null"
    refused(bucket, bucket.files.new_run(0), [{"k": None}], match=told)
