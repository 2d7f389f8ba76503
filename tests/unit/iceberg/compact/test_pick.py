"""The files that are rewritten together: by their size, by their deletes, and by their number."""

from __future__ import annotations

import pytest

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.files.file_format import FileFormat
from lakeformat.iceberg.compact.options import CompactOptions, compact_selection
from lakeformat.iceberg.compact.pick import file_groups
from lakeformat.iceberg.compact.settings import compact_settings
from lakeformat.iceberg.read.data_file import DataFile, DeleteFile, FileSplit
from lakeformat.iceberg.read.planned_files import PlannedFile
from tests.unit.iceberg.path_table import empty_metadata


def planned(size: int, *deletes: DeleteFile, rows: int | None = 10) -> PlannedFile:
    data = DataFile("f", FileFormat.PARQUET, rows, size, 1)
    return PlannedFile(FileSplit(1, data, deletes), 0, "")


def delete(rows: int, data_file: str | None = "f") -> DeleteFile:
    return DeleteFile("d", FileFormat.PARQUET, rows, 1, 2, "", data_file=data_file)


def groups(*files: PlannedFile, **options) -> list[tuple[list[int], bool, str]]:
    options = {"target_file_bytes": 100, **options}
    settings = compact_settings(empty_metadata(), CompactOptions(**options))
    found = file_groups(files, settings)
    return [([each.bytes for each in one.files], one.is_chosen, one.reason) for one in found]


def test_files_near_the_target_size_are_not_due():
    assert groups(planned(75), planned(100), planned(180)) == []


def test_few_small_files_are_left_as_they_are():
    reason = "only 4 small files, fewer than min_input_files=5"
    assert groups(*[planned(1)] * 4) == [([1] * 4, False, reason)]


def test_many_small_files_become_one():
    reason = "5 files, at least min_input_files=5"
    assert groups(*[planned(1)] * 5) == [([1] * 5, True, reason)]


def test_one_small_file_is_never_rewritten_alone():
    alone = groups(planned(1), min_input_files=1)[0]
    assert alone[1] is False
    assert alone[2].endswith(", which would become one file again")


def test_two_files_that_fill_a_whole_one_are_joined():
    assert groups(planned(60), planned(41)) == [
        ([60, 41], True, "together they fill a file of 100 B")
    ]
    assert groups(planned(60), planned(40))[0][1] is False


def test_a_file_that_is_too_large_is_split():
    assert groups(planned(181)) == [([181], True, "181 B is more than max_file_bytes")]


def test_a_file_with_many_deleted_rows_is_rewritten_alone():
    reason = "1 file with many deletes"
    assert groups(planned(100, delete(3))) == [([100], True, reason)]
    assert groups(planned(100, delete(2))) == []
    assert groups(planned(100, delete(1), delete(2))) == [([100], True, reason)]
    assert groups(planned(100, delete(1)), delete_ratio_threshold=0.1) == [([100], True, reason)]


def test_deletes_that_may_be_of_other_files_count_only_by_their_number():
    assert groups(planned(100, delete(9, data_file=None))) == []
    assert groups(planned(100, delete(9, data_file=None)), delete_file_threshold=1)[0][1]
    assert groups(planned(100, delete(9), rows=None)) == []


def test_groups_have_at_most_a_size():
    found = groups(*[planned(30)] * 7, planned(300), max_group_bytes=90, min_input_files=2)
    assert [sizes for sizes, _, _ in found] == [[30] * 3, [30] * 3, [30], [300]]
    assert [chosen for _, chosen, _ in found] == [True, True, False, True]


def test_all_files_are_rewritten_on_request():
    assert groups(planned(100), rewrite_all=True) == [([100], True, "all files are rewritten")]


def test_the_target_size_is_that_of_the_table():
    metadata = empty_metadata(properties={"write.target-file-size-bytes": "1000"})
    found = compact_settings(metadata, CompactOptions())
    assert (found.min_bytes, found.target_bytes, found.max_bytes) == (750, 1000, 1800)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_file_bytes": 0}, "the sizes must ascend from 0"),
        ({"target_file_bytes": 10, "min_file_bytes": 11}, r"min_file_bytes \(11\)"),
        ({"target_file_bytes": 10, "max_file_bytes": 9}, r"max_file_bytes \(9\)"),
        ({"max_group_bytes": 0}, "max_group_bytes must be at least 1, got 0"),
        ({"min_input_files": 0}, "min_input_files must be at least 1, got 0"),
        ({"delete_ratio_threshold": 30}, "at most 1, got 30"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(InvalidRequestError, match=message):
        compact_settings(empty_metadata(), CompactOptions(**options))


def test_unknown_options_and_those_of_paimon_are_refused_by_name():
    with pytest.raises(InvalidRequestError, match="did you mean 'min_input_files'"):
        compact_selection(None, None, {"min_input_file": 2})
    with pytest.raises(UnsupportedError, match="does not take buckets: choose files with where"):
        compact_selection(None, None, {"buckets": [1]})
    assert compact_selection(None, None, {"buckets": None}).options == CompactOptions(
        strategy="minor"
    )
    with pytest.raises(InvalidRequestError, match="minor, binpack, full, sort, zorder, got 'some'"):
        compact_selection(None, None, {"strategy": "some"})


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("remove_dangling_deletes", "call compact_deletes"),
        ("use-starting-sequence-number", "new files always keep the starting sequence number"),
        ("output_spec_id", "in the current partition spec"),
        ("options", r"compact\(min_input_files=2\)"),
    ],
)
def test_options_of_java_are_refused_with_what_to_do_instead(name, instead):
    with pytest.raises(InvalidRequestError, match=f"no option '{name}': .*{instead}"):
        compact_selection(None, None, {name: True})
