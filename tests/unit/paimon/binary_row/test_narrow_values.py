"""Values at the limit of a narrower unit or a bound: truncated, refused or left open."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeformat.files.logical_arrays import to_logical
from lakeformat.paimon.binary_row import decode_row, encode_row, frame_row, unframe_row
from lakeformat.paimon.metadata.simple_stats import partition_stats
from lakeformat.paimon.schema import new_schema
from lakeformat.paimon.system_tables.partition_text import PartitionTexts
from lakeformat.types.type_text import parse_type
from lakeformat.types.units import join_timestamp


@pytest.mark.parametrize(
    ("type_text", "nanos"),
    [
        ("TIMESTAMP(3)", 5_000_000),
        ("TIMESTAMP(6)", 5_123_000),
        ("TIMESTAMP(9)", 5_123_456),
        ("TIMESTAMP(0)", 5_000_000),
    ],
)
def test_digits_finer_than_a_timestamp_are_cut_off_downwards(type_text, nanos):
    assert join_timestamp(5, 123_456, parse_type(type_text)) == nanos
    before_1970 = join_timestamp(-6, 876_544, parse_type(type_text))
    assert before_1970 <= -6_000_000 + 876_544 < before_1970 + 1_000_000


def test_seconds_that_the_unit_of_a_column_does_not_reach_are_no_other_time():
    seconds = pa.array([2**62], pa.timestamp("s"))
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        to_logical(seconds, parse_type("TIMESTAMP(9)"))


def test_a_partition_of_nan_leaves_the_bounds_of_partitions_open():
    types = [parse_type("DOUBLE")]
    partitions = [frame_row(encode_row((value,), types), 1) for value in (1.0, float("nan"), 2.0)]
    stats = partition_stats(pa.array(partitions, pa.binary()), types)
    for bound in (stats.min_values, stats.max_values):
        assert decode_row(unframe_row(bound)[1], types) == (None,)
    assert stats.null_counts == (0,)


def test_blank_partitions_are_shown_by_the_default_name():
    schema = new_schema([("k", "STRING")], partition_by=["k"], time_millis=0)
    types = [field.type for field in schema.fields]
    values = ["a b", None, "", " \t", "\x1f", "\u00a0"]
    rows = [frame_row(encode_row((value,), types), 1) for value in values]
    shown = PartitionTexts(schema, pa.array(rows, pa.binary()), str).distinct_as_path
    default = "k=__DEFAULT_PARTITION__"
    assert shown == ["k=a b", default, default, default, default, "k=\u00a0"]
