"""Deletes are read from their files; a damaged one is an error, never a row too many or too few."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeformat.errors import CorruptTableError
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.file_format import FileFormat
from lakeformat.files.vector_record import VectorForm, encode_deletion_vector
from lakeformat.iceberg.file_places import places_of
from lakeformat.iceberg.read.data_file import DataFile, DeleteFile, FileSplit
from lakeformat.iceberg.read.deleted_rows import DeletedRows
from lakeformat.iceberg.read.file_rows import FileRows
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.storage import NO_ROOTS, MemoryStorage

ID = Field(1, "id", PrimitiveType("long"))
ROWS = 10
PATH_ID, POSITION_ID = 2_147_483_546, 2_147_483_545


class Folder:
    """A table's directory in memory, without metadata."""

    def __init__(self) -> None:
        self.storage = MemoryStorage("deletes")
        self.root = "t"
        self.location = self.storage.uri(self.root)
        places = places_of(self.storage, self.root, self.location, NO_ROOTS)
        self.deleted = DeletedRows(FileRows(places), [Schema(0, (ID,))])

    def write(self, name: str, content: bytes) -> str:
        """Write a file and return its address."""
        self.storage.overwrite(f"{self.root}/{name}", content)
        return f"{self.location}/{name}"

    def positions(self, name: str, rows: Sequence[tuple[str, int]], *, ids: bool = True) -> str:
        """Write a file of position deletes for data files of this directory."""
        metadata = [{"PARQUET:field_id": str(each)} for each in (PATH_ID, POSITION_ID)]
        columns = [pa.array([f"{self.location}/{path}" for path, _ in rows], pa.string())]
        columns.append(pa.array([position for _, position in rows], pa.int64()))
        schema = pa.schema(
            [
                pa.field(field, column.type, metadata=each if ids else None)
                for field, column, each in zip(("file_path", "pos"), columns, metadata, strict=True)
            ]
        )
        return self.write(name, parquet(pa.table(columns, schema=schema)))

    def keys(self, name: str, values: Sequence[int | None]) -> str:
        """Write a file of equality deletes by the column ``id``."""
        field = pa.field("id", pa.int32(), metadata={"PARQUET:field_id": "1"})
        return self.write(
            name, parquet(pa.table([pa.array(values, pa.int32())], schema=pa.schema([field])))
        )

    def split(self, *deletes: DeleteFile, data: str = "a", number: int = 1) -> FileSplit:
        file = DataFile(f"{self.location}/{data}", FileFormat.PARQUET, ROWS, 1, number)
        return FileSplit(7, file, deletes)


@pytest.fixture
def folder() -> Folder:
    return Folder()


def parquet(table: pa.Table) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, store_schema=False)
    return stream.getvalue()


def delete(path: str, count: int, **more: Any) -> DeleteFile:
    chosen: dict[str, Any] = {"format": FileFormat.PARQUET, "sequence_number": 2, "scope": "p"}
    return DeleteFile(path=path, record_count=count, size_bytes=1, **(chosen | more))


def gone(folder: Folder, split: FileSplit) -> list[int]:
    vector = folder.deleted.vector(split)
    return [] if vector is None else vector.to_numpy().tolist()


@pytest.mark.parametrize("ids", [True, False])
def test_positions_of_several_files_are_joined_for_each_data_file(folder, ids):
    one = delete(folder.positions("1", [("a", 3), ("b", 0), ("a", 1)], ids=ids), 3)
    two = delete(folder.positions("2", [("a", 3), ("a", 9)], ids=ids), 2)
    assert gone(folder, folder.split(one, two)) == [1, 3, 9]
    assert gone(folder, folder.split(one, two, data="b")) == [0]
    assert gone(folder, folder.split(one, two, data="c")) == []
    keep = folder.deleted.keep(folder.split(one))
    assert keep is not None
    assert keep(2, 3).tolist() == [True, False, True]


def test_a_shared_file_is_read_once_for_its_data_files(folder):
    shared = delete(folder.positions("1", [("a", 3), ("b", 0)]), 2)
    assert gone(folder, folder.split(shared)) == [3]
    folder.storage.delete("t/1")
    assert gone(folder, folder.split(shared, data="b")) == [0]


def vector_file(folder: Folder, rows: list[int]) -> tuple[str, bytes]:
    record, _ = encode_deletion_vector(DeletionVector.of(rows), VectorForm.BITMAP64)
    return folder.write("v.puffin", b"PFA1" + record + b"after"), record


def vector(folder: Folder, path: str, size: int, count: int) -> DeleteFile:
    return delete(
        path,
        count,
        format=None,
        data_file=f"{folder.location}/a",
        content_offset=4,
        content_size=size,
    )


def test_a_deletion_vector_is_read_from_its_place_in_the_file(folder):
    path, record = vector_file(folder, [0, 5, 9])
    assert gone(folder, folder.split(vector(folder, path, len(record), 3))) == [0, 5, 9]


def test_a_changed_byte_of_a_deletion_vector_is_noticed(folder):
    path, record = vector_file(folder, [0, 5, 9])
    damaged = bytearray(record)
    damaged[-6] ^= 1  # before the checksum
    folder.write("v.puffin", b"PFA1" + bytes(damaged))
    with pytest.raises(CorruptTableError, match=r"v\.puffin .* wrong checksum"):
        gone(folder, folder.split(vector(folder, path, len(record), 3)))


@pytest.mark.parametrize(("cut", "count"), [(0, 4), (1, 3), (30, 3)])
def test_a_vector_that_does_not_fit_its_manifest_is_damage(folder, cut, count):
    path, record = vector_file(folder, [0, 5, 9])
    with pytest.raises(CorruptTableError, match=r"v\.puffin"):
        gone(folder, folder.split(vector(folder, path, len(record) - cut, count)))


def test_a_deleted_row_beyond_the_end_of_its_file_is_damage(folder):
    far = delete(folder.positions("1", [("a", ROWS)]), 1)
    with pytest.raises(CorruptTableError, match=f"deletes row {ROWS} of .*/a, which has {ROWS}"):
        gone(folder, folder.split(far))
    sound = delete(folder.positions("2", [("a", 1)]), 1)
    with pytest.raises(CorruptTableError, match=f"/t/1 deletes row {ROWS} of"):
        gone(folder, folder.split(sound, far))


def test_a_missing_or_shortened_delete_file_is_damage(folder):
    path = folder.positions("1", [("a", 1)])
    with pytest.raises(CorruptTableError, match="the manifest records 2"):
        gone(folder, folder.split(delete(path, 2)))
    folder.storage.delete("t/1")
    with pytest.raises(CorruptTableError, match="is missing although a manifest lists it"):
        gone(folder, folder.split(delete(path, 1)))


def equality(path: str, count: int, number: int) -> DeleteFile:
    return delete(path, count, sequence_number=number, equality_ids=(1,))


def test_keys_of_all_files_of_a_scope_delete_older_rows_with_their_values(folder):
    """The keys are of the column's earlier type, and each applies from its own number on."""
    older = equality(folder.keys("1", [1, None]), 2, 2)
    newer = equality(folder.keys("2", [3]), 1, 5)
    rows = [pa.array([1, 2, 3, None], pa.int64())]
    splits = [folder.split(older, newer), folder.split(newer, number=3)]
    folder.deleted.expect(splits)
    expected = ([True, False, True, True], [False, False, True, False])
    for split, mask in zip(splits, expected, strict=True):
        [found] = folder.deleted.equality(split)
        assert [*found.fields] == [1]
        assert found.keys.deleted(rows, split.file.sequence_number).tolist() == mask


def test_keys_of_a_column_that_no_schema_has_are_an_error(folder):
    unknown = delete(folder.keys("1", [1]), 1, equality_ids=(99,))
    with pytest.raises(CorruptTableError, match="equality deletes that compare the field 99"):
        folder.deleted.equality(folder.split(unknown))
