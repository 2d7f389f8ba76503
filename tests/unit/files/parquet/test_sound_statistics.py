"""Statistics of Parquet footers that pyarrow would end the process over."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeformat.files.parquet.sound_statistics import SoundStatistics, read_footer
from lakeformat.files.parquet.thrift_compact import ThriftKind, parse_struct, serialize_struct


def statistics(cut=None, encryption=None):
    sink = io.BytesIO()
    rows = pa.table({"n": pa.array([1, 2]), "x": pa.array([b"abcde"] * 2, pa.binary(5))})
    pq.write_table(rows, sink)
    stored = sink.getvalue()
    start = len(stored) - 8 - int.from_bytes(stored[-8:-4], "little")
    footer = parse_struct(stored[start:-8])
    if cut is not None:
        chunk = footer[4][1].items[0][1][1].items[cut]
        chunk[3][1][12][1][6] = ThriftKind.BINARY, b"abc"
    if encryption:
        footer[8] = ThriftKind.STRUCT, {1: (ThriftKind.STRUCT, {})}
    changed = serialize_struct(footer)
    end = len(changed).to_bytes(4, "little") + b"PAR1"
    return SoundStatistics(*read_footer(io.BytesIO(stored[:start] + changed + end)))


def test_whole_bounds_are_told():
    assert statistics().of(0, 0).min == 1
    assert statistics().of(0, 1).min_raw == b"abcde"


def test_a_number_without_all_its_bytes_is_damage():
    with pytest.raises(OSError, match="a bound of 3 bytes for column 0 in row group 0"):
        statistics(cut=0).require()


def test_fixed_bytes_that_a_writer_has_cut_off_are_not_asked_for():
    found = statistics(cut=1)
    assert found.of(0, 1) is None
    assert found.of(0, 0).max == 2


def test_a_footer_with_an_encryption_is_not_written_again():
    assert statistics(encryption=True).of(0, 0) is None
