"""Tree nodes, the hash of a key, and the names of files of Mixed tables."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from lakeformat.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lakeformat.iceberg.types import Field, ListType, PrimitiveType
from lakeformat.mixed.file_names import FileKind, FileName, name_columns, parse_file_name
from lakeformat.mixed.key_hash import hash_keys, require_hashable
from lakeformat.mixed.tree_node import ROOT, TreeNode, bucket_mask
from tests.golden.mixed import MIXED_TABLES, mixed_table

NAME = "13-ED-7-00002-3-7502998595631226311-00001.parquet"


def test_a_node_is_inside_itself_and_inside_its_ancestors_only():
    node = TreeNode(7, 5)
    assert [TreeNode(3, 1), TreeNode(1, 1), ROOT] == [
        node.parent,
        TreeNode(3, 1).parent,
        TreeNode(1, 1).parent,
    ]
    assert all(node.is_inside(each) for each in (node, TreeNode(3, 1), TreeNode(1, 1), ROOT))
    assert not any(node.is_inside(each) for each in (TreeNode(3, 0), TreeNode(7, 1), node.left))
    assert node.may_share_keys(node.left)
    assert not node.may_share_keys(TreeNode(7, 1))


def test_a_key_at_few_buckets_is_in_an_ancestor_of_its_node_at_many():
    for bits in range(2000):
        few, many = TreeNode(3, bits & 3), TreeNode(63, bits & 63)
        assert many.is_inside(few)
        assert few.may_share_keys(many)


@pytest.mark.parametrize(("mask", "index"), [(2, 0), (-1, 0), (3, 4), (0, 1), (3, -1)])
def test_a_pair_of_numbers_that_is_no_node_is_refused(mask, index):
    with pytest.raises(InvalidRequestError, match="is not a tree node"):
        TreeNode(mask, index)


def test_an_id_below_one_and_a_number_of_buckets_that_is_no_power_of_two_are_refused():
    with pytest.raises(InvalidRequestError, match="0 is not the id of a tree node"):
        TreeNode.of_id(0)
    with pytest.raises(InvalidRequestError, match=r"'b' is 6, .* set it to a power of two"):
        bucket_mask(6, "b")
    assert bucket_mask(8, "b") == 7


def test_a_name_is_written_as_it_was_read():
    found = parse_file_name(f"s3://b/wh/t_change_/data/p=x/{NAME}")
    assert found == FileName(
        TreeNode(7, 5), FileKind.CHANGE_DELETE, 7, 2, 3, "7502998595631226311", 1
    )
    assert str(found) == NAME


@pytest.mark.parametrize("name", MIXED_TABLES)
def test_the_names_of_amoros_files_give_their_node_and_transaction(name):
    files = mixed_table(name).steps[-1]["change_files"]
    for file, found in zip(
        files, name_columns(pa.array([each["path"] for each in files])).to_pylist(), strict=True
    ):
        node = TreeNode.of_id(found["node"])
        assert f"TreeNode({node.mask},{node.index})" == file["node"]
        assert (found["transaction"] or file["data_sequence_number"]) == file["transaction_id"]
        kind = {"I": "INSERT_FILE", "ED": "EQ_DELETE_FILE"}[found["kind"]]
        assert kind == file["type"]
        assert str(parse_file_name(file["path"])) == file["path"].rpartition("/")[2]


FOREIGN = (
    "00000-0-8f1c.parquet",
    "0-I-1-00000-0-1-00001.parquet",
    "5-X-1-00000-0-1-00001.parquet",
    "5-I-1-00000-0-1-00001.parquet/other",
    "x5-I-1-00000-0-1-00001.parquet",
    "",
)


def test_foreign_names_are_null_among_others():
    found = name_columns(pa.array([*FOREIGN, NAME]))
    assert [each is not None for each in found.to_pylist()] == [False] * len(FOREIGN) + [True]
    assert name_columns(pa.array([], pa.string())).to_pylist() == []


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_name_is_refused_by_name(name):
    with pytest.raises(
        CorruptTableError, match="does not have the name of a file of a Mixed table"
    ):
        parse_file_name(name)


def test_every_nan_has_one_hash_and_a_null_has_the_code_zero():
    double = [Field(1, "k", PrimitiveType("double"))]
    other = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
    hashes = hash_keys(double, [pa.array([math.nan, other, None, 0.0])]).tolist()
    assert hashes == [abs(31 + 0x7FF80000), abs(31 + 0x7FF80000), 31, 31]


def test_a_null_text_keeps_the_hashes_of_its_neighbours():
    texts = [Field(1, "k", PrimitiveType("string"))]
    values = ["a", None, "日本語", "", None, "𝄞"]
    alone = [hash_keys(texts, [pa.array([each], pa.string())])[0] for each in values]
    assert hash_keys(texts, [pa.array(values)]).tolist() == alone


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (PrimitiveType("timestamp_ns"), "timestamp_ns"),
        (ListType(2, PrimitiveType("int"), element_required=False), "list<int>"),
    ],
)
def test_a_key_column_without_a_hash_is_refused_by_name(kind, shown):
    with pytest.raises(UnsupportedError, match=f"key column 'k' has the type {shown}, for which"):
        require_hashable([Field(1, "k", kind)])
