"""Failed writes of a Parquet file keep their reason, and key columns have their key's bounds."""

from __future__ import annotations

import errno
import io
import os

import pyarrow as pa
import pytest

from lakeformat.errors import InvalidRequestError
from lakeformat.files.column_statistics import reduce_statistics
from lakeformat.files.parquet.writer import ParquetFileWriter
from lakeformat.paimon.datafile.rolling_writer import file_content
from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND, key_field
from lakeformat.paimon.options import TableOptions
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField
from lakeformat.types.values import values_to_arrow


def keyed_content(**columns):
    """The files of a table with these columns, by name and type, and the primary key ``k``."""
    fields = [DataField(n, name, parse_type(columns[name])) for n, name in enumerate(columns)]
    [key] = [key_field(field) for field in fields if field.name == "k"]
    stored = (key, SEQUENCE_NUMBER, VALUE_KIND, *fields)
    return file_content(stored, TableOptions({}), key_columns=("k",))


def keyed_rows(content, **values):
    """Rows of a file, from the values of the table's columns."""
    count = len(values["k"])
    values |= {"_KEY_k": values["k"], "_SEQUENCE_NUMBER": [*range(count)]}
    values["_VALUE_KIND"] = [0] * count
    arrays = [values_to_arrow(values[field.name], field.type) for field in content.fields]
    return pa.table(arrays, schema=to_arrow_schema(content.fields))


def write(content, groups, stream):
    writer = ParquetFileWriter(stream, content)
    try:
        for rows in groups:
            writer.write(rows)
        return [*map(reduce_statistics, writer.close(), content.modes)]
    finally:
        writer.discard()


def test_a_column_has_the_statistics_of_its_key():
    content = keyed_content(k="INT NOT NULL")
    key, _, _, column = write(content, [keyed_rows(content, k=[3, 1, 2])], io.BytesIO())
    assert key == column
    assert (column.minimum, column.maximum, column.null_count) == (1, 3, 0)


class FullDisk(io.BytesIO):
    """Has room for some writes."""

    def __init__(self, room):
        super().__init__()
        self.room = room

    def write(self, content):
        self.room -= 1
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(content)


def test_a_full_disk_is_reported_at_every_write():
    content = keyed_content(k="BIGINT NOT NULL", v="DOUBLE")
    rows = keyed_rows(content, k=[1, 2], v=[None, 0.5])
    whole = FullDisk(1000)
    write(content, [rows, rows], whole)
    writes = 1000 - whole.room
    assert writes > 20
    for room in range(writes):
        with pytest.raises(OSError, match="No space left on device"):
            write(content, [rows, rows], FullDisk(room))


def test_a_decimal_that_exceeds_its_type_is_reported_with_the_key_of_its_row():
    content = keyed_content(d="DECIMAL(9, 2)", k="BIGINT NOT NULL")
    rows = keyed_rows(content, k=[7, 8], d=[None, None])
    unscaled = b"".join(number.to_bytes(16, "little") for number in (1, 1 << 40))
    outgrown = pa.Array.from_buffers(pa.decimal128(9, 2), 2, [None, pa.py_buffer(unscaled)])
    rows = rows.set_column(rows.column_names.index("d"), "d", outgrown)
    with pytest.raises(InvalidRequestError, match="column 'd' of the row k = 8 is 10995116277"):
        write(content, [rows], io.BytesIO())
