"""Hashes of keys and tree nodes are those that Amoro's own code computes."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.type_json import type_from_json
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.mixed.key_hash import hash_keys
from lakeformat.mixed.tree_node import TreeNode
from tests.golden.mixed import hash_vectors

PARSED = {
    "decimal": Decimal,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "timestamptz": dt.datetime.fromisoformat,
    "binary": bytes.fromhex,
    "fixed": bytes.fromhex,
    "uuid": lambda text: uuid.UUID(text).bytes,
}
VECTORS = hash_vectors()["key_hashes"]


def key_of(vector: dict[str, Any]) -> tuple[list[Field], list[Any]]:
    """The key columns of a vector, in the order of the key, and their values."""
    places = {name: place for place, name in enumerate(vector["columns"])}
    fields, values = [], []
    for name in vector["key_columns"]:
        place = places[name]
        kind = type_from_json(vector["column_types"][place].replace(" ", ""))
        assert isinstance(kind, PrimitiveType)
        fields.append(Field(place, name, kind))
        values.append(PARSED.get(kind.name, lambda same: same)(vector["row"][place]))
    return fields, values


def grouped() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for vector in VECTORS:
        kinds = (*vector["column_types"], *vector["key_columns"])
        found.setdefault("-".join(kinds), []).append(vector)
    return found


GROUPS = grouped()


def test_all_vectors_are_tested():
    assert sum(map(len, GROUPS.values())) == len(VECTORS) == 82


@pytest.mark.parametrize("kinds", GROUPS)
def test_the_hash_of_a_key_is_javas(kinds):
    vectors = GROUPS[kinds]
    fields = key_of(vectors[0])[0]
    rows = [key_of(vector)[1] for vector in vectors]
    columns = [
        pa.array(values, to_arrow_type(field.type))
        for field, values in zip(fields, zip(*rows, strict=True), strict=True)
    ]
    hashes = hash_keys(fields, columns)
    assert hashes.tolist() == [vector["hash"] for vector in vectors]
    sliced = [pa.concat_arrays([column, column]).slice(1) for column in columns]
    assert np.array_equal(hash_keys(fields, sliced), np.append(hashes[1:], hashes))
    assert hash_keys(fields, [column.slice(0, 0) for column in columns]).tolist() == []


@pytest.mark.parametrize("vector", VECTORS[::9], ids=str)
def test_the_node_of_a_key_follows_from_its_hash(vector):
    for buckets, index in vector["node_index_by_buckets"].items():
        node = TreeNode(int(buckets) - 1, vector["hash"] & (int(buckets) - 1))
        assert node.index == index
        assert buckets != "4" or node.id == vector["node_id_4"]


@pytest.mark.parametrize("vector", hash_vectors()["tree_nodes"], ids=lambda each: str(each["id"]))
def test_relatives_of_a_node_are_amoros(vector):
    node = TreeNode(vector["mask"], vector["index"])
    assert node.id == vector["id"]
    assert TreeNode.of_id(vector["id"]) == node
    assert node.left == TreeNode(*vector["left"])
    assert node.right == TreeNode(*vector["right"])
    assert node.parent == (TreeNode(*vector["parent"]) if vector["parent"] else None)
