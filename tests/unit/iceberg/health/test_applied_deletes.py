"""The data files that deletes apply to: the rules of partitions and sequence numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakeformat.iceberg.health.applied_deletes import AppliedDeletes, FileColumns, apply_deletes

DATA, POSITIONS, EQUALITY = 0, 1, 2


def applied(*files: dict[str, object]) -> AppliedDeletes:
    """Apply the deletes among files, each given by what differs from a data file of 10 rows."""
    plain = {"content": DATA, "rows": 10, "sequence": 1, "partition": 0}
    plain |= {"path": b"", "target": None, "is_vector": False, "is_everywhere": False}
    rows = [plain | each for each in files]

    def numbers(name: str) -> np.ndarray:
        return np.array([row[name] for row in rows])

    def binary(name: str) -> pa.ChunkedArray:
        return pa.chunked_array([pa.array([row[name] for row in rows], pa.large_binary())])

    return apply_deletes(
        FileColumns(
            **{name: numbers(name) for name in ("content", "rows", "sequence", "partition")},
            **{name: numbers(name) for name in ("is_vector", "is_everywhere")},
            **{name: binary(name) for name in ("path", "target")},
            size=numbers("rows"),
            spec_id=numbers("partition"),
        )
    )


def vector(path: bytes, **more: object) -> dict[str, object]:
    return {"content": POSITIONS, "rows": 4, "target": path, "is_vector": True} | more


def test_a_delete_of_one_file_hides_its_rows():
    found = applied({"path": b"a"}, {"path": b"b"}, vector(b"b", is_vector=False))
    assert found.has_deletes.tolist() == [False, True, False]
    assert found.hidden.tolist() == [0, 4, 0]
    assert found.hidden_rows == 4


def test_a_vector_replaces_the_position_deletes_of_its_file():
    found = applied({"path": b"a"}, vector(b"a"), vector(b"a", is_vector=False, rows=3))
    assert found.hidden.tolist()[0] == 4
    assert found.dangling.tolist() == [False, False, True]


def test_a_delete_whose_file_was_rewritten_dangles():
    found = applied({"path": b"new", "sequence": 5}, vector(b"old"), vector(b"new", sequence=4))
    assert found.dangling.tolist() == [False, True, True]
    assert not found.has_deletes.any()


def test_position_deletes_of_a_partition_apply_to_files_that_are_not_newer():
    found = applied(
        {"sequence": 3},
        {"sequence": 4},
        {"sequence": 1, "partition": 1},
        {"content": POSITIONS, "sequence": 3},
        {"content": POSITIONS, "sequence": 2},
    )
    assert found.has_deletes.tolist() == [True, False, False, False, False]
    assert found.dangling.tolist() == [False, False, False, False, True]


def test_equality_deletes_apply_to_older_files_of_their_partition():
    found = applied(
        {"sequence": 2},
        {"sequence": 3},
        {"sequence": 1, "partition": 1},
        {"content": EQUALITY, "sequence": 3},
        {"content": EQUALITY, "sequence": 2},
    )
    assert found.has_equality_deletes.tolist() == [True, False, False, False, False]
    assert found.dangling.tolist() == [False, False, False, False, True]


def test_equality_deletes_without_a_partition_apply_everywhere():
    found = applied(
        {"sequence": 2, "partition": 1},
        {"sequence": 1, "partition": 2},
        {"content": EQUALITY, "sequence": 2, "is_everywhere": True},
    )
    assert found.has_equality_deletes.tolist() == [False, True, False]
    assert not found.dangling.any()


def test_deletes_of_a_table_without_data_files_dangle():
    found = applied(vector(b"a"), {"content": POSITIONS}, {"content": EQUALITY})
    assert found.dangling.all()
