"""A disk that fills up under an ORC file is an error, not the end of the process."""

from __future__ import annotations

import errno
import io

import pytest

from lakeformat.files.orc.patient_stream import PatientStream


class FullAfter(io.BytesIO):
    """Takes so many bytes."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def write(self, content):
        if self.tell() + len(content) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(content)


def test_errors_wait_until_they_are_asked_for_and_nothing_follows_them():
    disk = FullAfter(4)
    stream = PatientStream(disk)
    assert [stream.write(part) for part in (b"ab", b"cde", b"f")] == [2, 3, 1]
    assert stream.tell() == 6
    assert disk.getvalue() == b"ab"
    with pytest.raises(OSError, match="No space left"):
        stream.raise_error()


@pytest.mark.parametrize("room", [0, 1, 100, 500])
def test_an_orc_file_on_a_full_disk_raises_the_disk_s_error(room):
    import pyarrow as pa

    from lakeformat.files.orc.writer import OrcFileWriter
    from lakeformat.paimon.datafile.rolling_writer import file_content
    from lakeformat.paimon.options import TableOptions
    from lakeformat.types.types import STRING, DataField

    options = TableOptions({"file.format": "orc"})
    fields = (DataField(0, "text", STRING),)
    content = file_content(fields, options)
    writer = OrcFileWriter(FullAfter(room), content)
    with pytest.raises(OSError, match="No space left"):  # noqa: PT012 - either call may raise
        writer.write(pa.table({"text": [f"{n:064}" for n in range(10_000)]}))
        writer.close()
    writer.discard()
