"""Rows, keys, partitions and statistics of other writers: the same buckets and the same bytes.

The Java code is followed to the byte. pypaimon deviates in two places that are known, and only
there its bytes may differ: it keeps no room for a null wide decimal or timestamp, and it ignores
``bucket-function.type`` (no golden table of its own sets that option).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeformat.paimon.binary_row import (
    decode_columns,
    decode_row,
    encode_columns,
    encode_row,
    frame_row,
    unframe_row,
)
from lakeformat.paimon.binary_row.layout import reserved_size
from lakeformat.paimon.bucketing import bucket_function
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import open_storage
from lakeformat.types.types import DataType
from lakeformat.types.values import values_from_arrow
from tests.golden.tables import HOW_TO_UNSKIP, GoldenTable, golden_tables
from tests.manifest_entries import entries_in

TABLES = {table.name: table for table in golden_tables()}
MISSING = [pytest.param(None, id="none", marks=pytest.mark.skip(reason=HOW_TO_UNSKIP))]
ALL = [pytest.param(table, id=name) for name, table in TABLES.items()] or MISSING
BUCKETED = [
    pytest.param(TABLES[f"{writer}/{name}"], kind, id=name)
    for writer, name, kind in (
        ("format-java", "bucket_fn_default", "default"),
        ("format-java", "bucket_fn_mod", "mod"),
        ("format-java", "bucket_fn_hive", "hive"),
        ("format-java", "bucket_null_wide_keys", "default"),
        ("format", "append_bucketed", "default"),
        ("format", "pk_fixed_bucket", "default"),
    )
    if TABLES
] or [pytest.param(None, None, id="none", marks=pytest.mark.skip(reason=HOW_TO_UNSKIP))]


@dataclass(frozen=True)
class KeptRow:
    """A framed row somewhere in a manifest, and the types of its fields."""

    what: str
    framed: bytes
    types: tuple[DataType, ...]

    @property
    def values(self) -> tuple[Any, ...]:
        arity, row = unframe_row(self.framed)
        assert arity == len(self.types), self.what
        return decode_row(row, self.types)

    @property
    def has_wide_null(self) -> bool:
        pairs = zip(self.values, self.types, strict=True)
        return any(value is None and reserved_size(kind) for value, kind in pairs)


def entries_of(golden: GoldenTable) -> Iterator[tuple[ManifestEntry, TableSchema]]:
    """Every entry of every manifest, with the schema of its file."""
    storage, root = open_storage(golden.location)
    layout = TableLayout(root)
    for path in sorted(Path(golden.location, "manifest").glob("manifest-*")):
        if not path.name.startswith("manifest-list-"):
            for entry in entries_in(storage, layout, path.name):
                yield entry, read_schema(storage, layout, entry.file.schema_id)


def types_of(schema: TableSchema, names: Sequence[str]) -> tuple[DataType, ...]:
    by_name = {field.name: field.type for field in schema.fields}
    return tuple(by_name[name] for name in names)


def trimmed_key(schema: TableSchema) -> list[str]:
    """The primary key without the partition columns."""
    return [name for name in schema.primary_keys if name not in schema.partition_keys]


def stats_columns(entry: ManifestEntry, schema: TableSchema) -> Sequence[str]:
    covered = entry.file.value_stats_cols
    return [field.name for field in schema.fields] if covered is None else covered


def kept_rows(golden: GoldenTable) -> Iterator[KeptRow]:
    for entry, schema in entries_of(golden):
        file, key = entry.file, types_of(schema, trimmed_key(schema))
        yield KeptRow("partition", entry.partition, types_of(schema, schema.partition_keys))
        stats = types_of(schema, stats_columns(entry, schema))
        rows = [
            ("min key", file.min_key, key),
            ("max key", file.max_key, key),
            ("key minimum", file.key_stats.min_values, key),
            ("key maximum", file.key_stats.max_values, key),
            ("minimum", file.value_stats.min_values, stats),
            ("maximum", file.value_stats.max_values, stats),
        ]
        for what, framed, types in rows:
            yield KeptRow(f"{what} of {file.file_name}", framed, types)


def data_file(golden: GoldenTable, entry: ManifestEntry) -> pa.Table | None:
    """A Parquet file that is still there."""
    found = list(Path(golden.location).rglob(entry.file.file_name))
    if not found or found[0].suffix != ".parquet":
        return None
    return pq.ParquetFile(found[0]).read()


def values_of(rows: pa.Table, name: str, data_type: DataType) -> list[Any]:
    return values_from_arrow(rows.column(name).combine_chunks(), data_type)


@pytest.mark.parametrize(("golden", "kind"), BUCKETED)
def test_each_row_lies_in_the_bucket_computed_for_it(golden: GoldenTable, kind: str):
    seen = 0
    for entry, schema in entries_of(golden):
        rows = data_file(golden, entry)
        if rows is None:
            continue
        key = str(schema.options.get("bucket-key", "")).split(",")
        key = key if key != [""] else trimmed_key(schema)
        function = bucket_function(kind, types_of(schema, key), entry.total_buckets)
        found = function([rows.column(name).combine_chunks() for name in key])
        assert found.tolist() == [entry.bucket] * len(rows)
        seen += len(rows)
    assert seen >= golden.row_count


@pytest.mark.parametrize("golden", ALL)
def test_every_kept_row_is_encoded_to_the_bytes_it_came_from(golden: GoldenTable):
    is_java = golden.name.startswith("format-java/")
    seen = 0
    for row in kept_rows(golden):
        encoded = frame_row(encode_row(row.values, row.types), len(row.types))
        if is_java or not row.has_wide_null:
            assert encoded.hex() == row.framed.hex(), row.what
        if row.types:
            columns = decode_columns(pa.array([row.framed]), row.types)
            decoded = [values_from_arrow(*pair)[0] for pair in zip(columns, row.types, strict=True)]
            assert repr(tuple(decoded)) == repr(row.values), row.what
            assert encode_columns(columns, row.types).to_pylist() == [encoded], row.what
        seen += 1
    assert seen


@pytest.mark.parametrize("golden", ALL)
def test_the_keys_of_a_file_are_those_of_its_first_and_last_row(golden: GoldenTable):
    for entry, schema in entries_of(golden):
        rows, key = data_file(golden, entry), trimmed_key(schema)
        if rows is None or not key:
            continue
        types = types_of(schema, key)
        prefix = "_KEY_" if f"_KEY_{key[0]}" in rows.column_names else ""  # none in thin mode
        columns = [values_of(rows, prefix + n, t) for n, t in zip(key, types, strict=True)]
        keys = list(zip(*columns, strict=True))
        assert KeptRow("min key", entry.file.min_key, types).values == keys[0]
        assert KeptRow("max key", entry.file.max_key, types).values == keys[-1]


@pytest.mark.parametrize("golden", ALL)
def test_the_partition_of_a_file_has_the_values_of_its_rows(golden: GoldenTable):
    for entry, schema in entries_of(golden):
        rows, names = data_file(golden, entry), schema.partition_keys
        if rows is None:
            continue
        types = types_of(schema, names)
        values = KeptRow("partition", entry.partition, types).values
        for name, data_type, value in zip(names, types, values, strict=True):
            assert set(values_of(rows, name, data_type)) == {value}, name


@pytest.mark.parametrize("golden", ALL)
def test_statistics_bound_the_values_of_their_file(golden: GoldenTable):
    for entry, schema in entries_of(golden):
        rows, names = data_file(golden, entry), stats_columns(entry, schema)
        if rows is None:
            continue
        types, stats = types_of(schema, names), entry.file.value_stats
        low = KeptRow("minimum", stats.min_values, types).values
        high = KeptRow("maximum", stats.max_values, types).values
        for name, data_type, least, most in zip(names, types, low, high, strict=True):
            present = [v for v in values_of(rows, name, data_type) if v is not None]
            if least is not None and most is not None:
                assert least <= min(present) <= max(present) <= most, name
