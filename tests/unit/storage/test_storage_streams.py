"""Streams over an object store: few requests when reading, few parts in memory when writing."""

from __future__ import annotations

import io
import random
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeformat.storage.object_input import READ_AHEAD, RangeStream
from lakeformat.storage.object_output import PART_BYTES, UploadStream


class Ranges:
    """A file that counts how often and how much of it is asked for."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.asked: list[tuple[int, int]] = []

    def stream(self) -> RangeStream:
        return RangeStream(len(self.content), self._fetch)

    def _fetch(self, start: int, end: int) -> memoryview:
        assert 0 <= start < end <= len(self.content)
        self.asked.append((start, end))
        return memoryview(self.content)[start:end]


def test_a_small_file_is_one_request_wherever_it_is_read():
    ranges = Ranges(bytes(range(256)))
    stream = ranges.stream()
    stream.seek(-8, io.SEEK_END)
    assert stream.read() == bytes(range(248, 256))
    stream.seek(3)
    assert stream.read(2) == bytes((3, 4))
    assert ranges.asked == [(0, 256)]


def test_reading_in_sequence_fetches_ahead():
    content = random.Random(0).randbytes(3 * READ_AHEAD)
    ranges = Ranges(content)
    stream = ranges.stream()
    assert b"".join(iter(lambda: stream.read(1000), b"")) == content
    assert len(ranges.asked) <= 5


def test_a_large_read_is_one_request_of_that_size():
    ranges = Ranges(bytes(8 * READ_AHEAD))
    stream = ranges.stream()
    stream.seek(READ_AHEAD)
    assert len(stream.read(5 * READ_AHEAD)) == 5 * READ_AHEAD
    assert ranges.asked == [(READ_AHEAD, 6 * READ_AHEAD)]


def test_random_reads_give_what_a_file_gives():
    chance = random.Random(1)
    content = chance.randbytes(2 * READ_AHEAD + 17)
    stream, file = Ranges(content).stream(), io.BytesIO(content)
    for _ in range(300):
        position, count = chance.randrange(len(content) + 100), chance.randrange(READ_AHEAD)
        assert stream.seek(position) == file.seek(position)
        assert stream.read(count) == file.read(count)
        assert stream.tell() == file.tell() or position > len(content)


def test_an_empty_file_is_read_without_a_request():
    ranges = Ranges(b"")
    assert ranges.stream().read() == b""
    assert ranges.asked == []


def test_one_column_of_parquet_is_its_footer_and_its_chunks():
    numbers = np.random.default_rng(0).random((4, 600_000))
    table = pa.table({f"c{n}": column for n, column in enumerate(numbers)})
    sink = io.BytesIO()
    pq.write_table(table, sink, use_dictionary=False, compression="none", row_group_size=300_000)
    ranges = Ranges(sink.getvalue())
    file = pq.ParquetFile(pa.PythonFile(ranges.stream(), mode="r"), pre_buffer=False)
    assert file.read(["c2"])["c2"].equals(table["c2"])
    assert len(ranges.asked) == 1 + file.num_row_groups


# Writing


class Upload:
    """The target of parts, as slow as a remote store."""

    def __init__(self, fail_at: int | None = None, pause_seconds: float = 0) -> None:
        self.stream = UploadStream(self._put, self._upload)
        self.put: list[bytes] = []
        self.parts: list[bytes] = []
        self.ahead: list[int] = []
        self.ended: list[BaseException] = []
        self._fail_at = fail_at
        self._pause_seconds = pause_seconds

    def _put(self, content: bytes) -> None:
        self.put.append(content)

    def _upload(self, parts) -> None:
        try:
            for part in parts:
                self.parts.append(part)
                time.sleep(self._pause_seconds)
                self.ahead.append(self.stream.tell() // PART_BYTES - len(self.parts))
                if len(self.parts) == self._fail_at:
                    raise ConnectionError("the store is gone")
        except BaseException as error:
            self.ended.append(error)
            raise


@pytest.mark.parametrize("size", [0, 1, PART_BYTES])
def test_up_to_one_part_is_put_at_the_end(size):
    upload = Upload()
    upload.stream.write(bytes(size))
    assert upload.put == []
    upload.stream.finish()
    assert upload.put == [bytes(size)]
    assert upload.parts == []


def test_more_is_uploaded_in_equal_parts():
    content = random.Random(0).randbytes(3 * PART_BYTES + 5)
    upload = Upload()
    for start in range(0, len(content), 1_000_003):
        upload.stream.write(content[start : start + 1_000_003])
    upload.stream.finish()
    assert [len(part) for part in upload.parts] == [PART_BYTES, PART_BYTES, PART_BYTES, 5]
    assert b"".join(upload.parts) == content


def test_the_writer_waits_for_a_slow_store():
    upload = Upload(pause_seconds=0.1)
    for _ in range(12):
        upload.stream.write(bytes(PART_BYTES))
    upload.stream.finish()
    assert max(upload.ahead) <= 4


def test_an_error_of_the_store_reaches_the_writer():
    upload = Upload(fail_at=2)

    def write() -> None:
        for _ in range(50):
            upload.stream.write(bytes(PART_BYTES))
        upload.stream.finish()

    with pytest.raises(ConnectionError, match="the store is gone"):
        write()
    upload.stream.abort()


def test_an_aborted_upload_hears_of_it_and_ends():
    upload = Upload()
    for _ in range(3):
        upload.stream.write(bytes(PART_BYTES))
    upload.stream.abort()
    assert [type(error).__name__ for error in upload.ended] == ["_Aborted"]
    assert upload.put == []
