"""Base files without a version larger than those of the inserts are not read for their versions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.read.key_ranges import KeyRange
from lakeformat.mixed.read.version_ranges import VersionRanges

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("version", pa.int64())])
ONLY_NULLS = KeyRange(None, None, has_nulls=True, has_values=False)
UNKNOWN = KeyRange(None, None, has_nulls=True, has_values=True)


def between(lower: int | None, upper: int | None, *, nulls: bool = False) -> KeyRange:
    return KeyRange(lower, upper, has_nulls=nulls, has_values=True)


@pytest.mark.parametrize(
    ("base", "inserts", "is_read"),
    [
        (between(1, 5), [between(6, 9)], False),
        (between(1, 5), [between(5, 9)], False),  # an equal version hides nothing
        (between(1, 6), [between(5, 9)], True),
        (between(1, 5), [between(6, 9), between(4, 4)], True),
        (between(1, 5, nulls=True), [between(5, 9)], False),  # a null is the smallest version
        (between(1, 5), [between(6, 9, nulls=True)], True),
        (between(1, 5), [ONLY_NULLS], True),
        (ONLY_NULLS, [ONLY_NULLS], False),
        (ONLY_NULLS, [UNKNOWN], False),
        (UNKNOWN, [between(6, 9)], True),
        (between(1, None), [between(6, 9)], True),
        (between(1, 5), [between(None, 9)], True),
        (between(1, 5), [between(6, 9), UNKNOWN], True),
    ],
)
def test_only_a_larger_version_can_hide_an_insert(base, inserts, is_read):
    names = [f"insert-{number}" for number in range(len(inserts))]
    ranges = VersionRanges({"base": base, **dict(zip(names, inserts, strict=True))})
    files: Any = [SimpleNamespace(path=name) for name in ("base", *names)]
    assert (ranges.may_be_larger(files[:1], files[1:]) == (files[0],)) is is_read


def rows(*given: tuple[Any, ...]) -> pa.Table:
    return pa.table([*map(list, zip(*given, strict=True))], schema=COLUMNS)


def contents(table: Any, **how: Any) -> dict[int, str]:
    found = table.scan(["id", "name"], **how).to_arrow().to_pydict()
    return dict(zip(found["id"], found["name"], strict=True))


def compared_files(table: Any, **how: Any) -> int:
    """Return the number of base files whose versions a scan compares with those of inserts."""
    explained = table.scan(**how).explain()
    assert (explained.version_bytes > 0) is (explained.version_files > 0)
    assert ("read once more, to compare their versions" in str(explained)) is (
        explained.version_files > 0
    )
    return explained.version_files


@pytest.mark.parametrize("statistics", ["full", "none"])
def test_rows_in_order_need_no_version_of_the_base_store_and_late_ones_do(tmp_path, statistics):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    options = {
        "lake.version-field": "version",
        "change.file-index.hash-bucket": "1",
        "base.file-index.hash-bucket": "1",
        "write.metadata.metrics.default": statistics,
    }
    table: Any = catalog.create_table(
        "db.t", COLUMNS, format="mixed", primary_key=["id"], options=options
    )
    table.write(rows((1, "a", 5), (2, "a", 7)))
    table.compact(strategy="full", executor="serial")
    table.write(rows((1, "b", 7), (3, "b", 8)))
    known = statistics == "full"
    assert compared_files(table) == (0 if known else 1)
    assert contents(table) == {1: "b", 2: "a", 3: "b"}
    assert contents(table, where="name = 'a'") == {2: "a"}
    table.write(rows((2, "late", 6)))
    assert compared_files(table) == compared_files(table, where="name = 'late'") == 1
    explained = table.scan(where="name = 'late'").explain()
    [split] = table.scan(where="name = 'late'").splits()
    others = {each.path for each in split.base_versions} - {each.path for each in split.files}
    assert len(others) == (1 if known else 0)  # statistics exclude the base file from the rows
    more = explained.version_bytes if others else 0
    assert split.size_bytes == explained.bytes_to_read + more
    assert contents(table) == {1: "b", 2: "a", 3: "b"}
    assert contents(table, where="name = 'late'") == {}
    table.compact(strategy="full", executor="serial")
    assert contents(table.base) == {1: "b", 2: "a", 3: "b"}
