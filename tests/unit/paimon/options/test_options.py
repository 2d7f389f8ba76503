"""Options are declared once and refuse what this version cannot honour."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options import TableOptions, declared_options


@pytest.mark.parametrize("option", declared_options(), ids=lambda option: option.key)
def test_every_default_is_a_value_its_own_option_accepts(option):
    unset = option.default == ""
    assert unset or option.parse(option.default) is not None


@pytest.mark.parametrize("option", declared_options(), ids=lambda option: option.key)
def test_every_option_says_in_one_sentence_what_it_does(option):
    assert option.description.endswith(".")
    assert len(option.description) > 20


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("1 b", 1), ("8mb", 8 << 20), ("8 MB", 8 << 20), ("2 g", 2 << 30), ("3kb", 3072)],
)
def test_sizes_read_as_java_reads_them(text, size):
    assert TableOptions({"target-file-size": text}).target_file_size_bytes == size


@pytest.mark.parametrize(
    ("text", "millis"), [("10 ms", 10), ("10", 10), ("2 s", 2000), ("1 min", 60_000), ("1h", 3.6e6)]
)
def test_durations_read_as_java_reads_them(text, millis):
    options = TableOptions({"commit.min-retry-wait": text})
    assert options.commit_min_retry_wait_millis == millis


def test_a_wrong_value_is_refused_by_name_with_what_would_be_right():
    with pytest.raises(InvalidRequestError, match=r"'target-file-size' is 'big'.*'128 mb'"):
        TableOptions({"target-file-size": "big"}).validate()


@pytest.mark.parametrize("key", ["fields.v.stats-mode", "write.compaction-skip"])
def test_a_wrong_value_is_refused_by_the_key_that_the_table_has(key):
    options = TableOptions({key: "x"})
    named = f"option '{key}' is 'x', but must be"
    with pytest.raises(InvalidRequestError, match=named):
        options.validate()
    assert str(options.misread()[key]).startswith(named)
    with pytest.raises(InvalidRequestError, match=named):
        options.differing({key: "y"})


def test_a_wrong_value_of_a_column_option_is_refused_by_the_key_of_the_column():
    options = TableOptions({"fields.v.stats-mode": "x"})
    with pytest.raises(InvalidRequestError, match=r"option 'fields\.v\.stats-mode' is 'x'"):
        options.of_column(TableOptions.column_statistics_mode, "v")


@pytest.mark.parametrize("prefix", ["", "a/b", "a\0b", "a\nb"])
def test_a_file_name_prefix_that_no_file_system_takes_is_refused(prefix):
    with pytest.raises(InvalidRequestError, match="part of a file name"):
        TableOptions({"data-file.prefix": prefix}).validate()


def test_an_unknown_option_is_refused_with_the_one_that_was_meant():
    with pytest.raises(InvalidRequestError, match="did you mean 'target-file-size'"):
        TableOptions({"target-filesize": "1 mb"}).validate()


@pytest.mark.parametrize("buckets", [-2, -1, 1, 4, 32767])
def test_every_number_of_buckets_other_writers_use_can_be_read(buckets):
    assert TableOptions({"bucket": str(buckets)}).bucket == buckets


@pytest.mark.parametrize("text", ["0", "-3", "many", "1.5", str(2**31)])
def test_a_number_of_buckets_that_cannot_be_is_refused(text):
    with pytest.raises(InvalidRequestError, match="'bucket' is"):
        TableOptions({"bucket": text}).validate()


def test_files_of_levels_are_smaller_unless_the_table_says_otherwise():
    assert TableOptions({}).target_file_size_bytes == 256 << 20
    assert TableOptions({}).of_level(0).target_file_size_bytes == 128 << 20
    assert TableOptions({"target-file-size": "1 gb"}).of_level(3).target_file_size_bytes == 1 << 30


def test_a_value_per_level_is_read_as_java_reads_it():
    options = TableOptions({"file.format.per.level": "0:avro, 3 : ORC"})
    assert options.file_format_per_level == {0: "avro", 3: "orc"}
    assert [options.of_level(level).file_format for level in (0, 1, 3)] == [
        "avro",
        "parquet",
        "orc",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("avro", "not a level, a colon and a value"),
        ("x:avro", "not a level, a colon and a value"),
        ("-1:avro", "not a level, a colon and a value"),
        ("0:avro,0:orc", "level 0 occurs twice"),
        ("0:lance", "this version supports no other"),
    ],
)
def test_a_value_per_level_that_says_nothing_is_refused_by_name(text, reason):
    with pytest.raises(InvalidRequestError, match=rf"'file.format.per.level' is .*{reason}"):
        TableOptions({"file.format.per.level": text}).validate()


def test_options_of_changelog_files_come_before_those_of_their_level():
    options = TableOptions(
        {
            "file.compression": "snappy",
            "file.compression.per.level": "0:none",
            "changelog-file.format": "avro",
            "metadata.stats-mode": "full",
        }
    )
    changes = options.of_changelog(0)
    assert (changes.file_format, changes.file_compression) == ("avro", "none")
    assert (options.of_changelog(1).file_compression, changes.statistics_mode) == ("snappy", "full")


def test_what_means_something_to_other_engines_alone_is_kept_and_stops_nothing():
    catalog = lake.open_catalog("memory://other-engines/wh")
    catalog.create_database("shop")
    options = {"bucket": "1", "sink.parallelism": "4", "scan.mode": "latest"}
    table = catalog.create_table("shop.t", [("id", "BIGINT")], primary_key=["id"], options=options)
    for _ in range(2):
        table.write(pa.table({"id": [1]}))
    table = catalog.alter_table("shop.t", lake.set_option("lookup.cache-rows", "10"))
    assert len(table.compact().snapshot_ids) == 1
    assert table.options.to_dict() == {**options, "lookup.cache-rows": "10"}


@pytest.mark.parametrize(
    ("options", "merging"),
    [
        ({}, {}),
        ({"merge-engine": "DEDUPLICATE", "bucket": "2", "ignore-delete": "true"}, {}),
        ({"aggregation.remove-record-on-delete": "false", "fields.v.stats-mode": "none"}, {}),
        (
            {"merge-engine": "Aggregation", "fields.v.aggregate-function": "sum"},
            {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
        ),
        (
            {"sequence.field": "v, w", "sequence.field.sort-order": "ascending"},
            {"sequence.field": ("v", "w")},
        ),
    ],
)
def test_the_options_that_decide_a_merge_are_found_without_defaults(options, merging):
    assert TableOptions(options).merging == merging
