"""Columns of files as columns of a table, also in other forms of Arrow."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeformat.errors import UnsupportedError
from lakeformat.files.logical_arrays import PhysicalTypeError, to_logical
from lakeformat.paimon.datafile.reader import read_batches
from lakeformat.storage.memory import MemoryStorage
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField


@pytest.mark.parametrize(
    "stored", [pa.large_list(pa.large_string()), pa.list_(pa.string_view(), 1)], ids=str
)
def test_a_list_may_be_stored_in_another_form(stored):
    lists = to_logical(pa.array([["a"], None], stored), parse_type("ARRAY<STRING>"))
    assert lists.equals(pa.array([["a"], None], pa.list_(pa.string())).cast(lists.type))


def test_a_list_is_no_number():
    with pytest.raises(PhysicalTypeError, match="are stored as large_list"):
        to_logical(pa.array([[1]], pa.large_list(pa.int32())), parse_type("INT"))


@pytest.mark.parametrize(
    ("part", "kind", "reason"),
    [
        ("typed_value", "VARIANT", "cannot read a VARIANT in shredded form"),
        ("__field_mapping", "MAP<STRING, INT>", "cannot read a MAP in shared-shredding form"),
    ],
)
def test_a_shredded_column_is_named_with_its_file(part, kind, reason):
    storage, field = MemoryStorage(), DataField(0, "note", parse_type(kind))
    stored = pa.table({"note": pa.array([{part: 1}])})
    content = io.BytesIO()
    pq.write_table(stored, content)
    storage.create("/t/a.parquet", content.getvalue())
    with pytest.raises(
        UnsupportedError, match=rf"column 'note' of memory:.*a\.parquet: .*{reason}"
    ):
        list(read_batches(storage, "/t/a.parquet", file_fields=(field,), wanted=(field,)))
