"""Puffin files have the bytes that Java writes for the same blobs."""

from __future__ import annotations

import io
import json

import pytest

from lakeformat.files.puffin import PuffinWriter
from lakeformat.files.vector_record import (
    DeletionVectorRange,
    VectorForm,
    decode_deletion_vector,
    encode_deletion_vector,
)
from tests.golden.iceberg import iceberg_table


def footer_of(content: bytes) -> dict:
    size = int.from_bytes(content[-12:-8], "little")
    found = json.loads(content[-12 - size : -12])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", ["v3_deletion_vectors", "v2_upgraded_to_v3"])
def test_the_vectors_of_java_are_written_again_with_the_same_bytes(name):
    files = sorted((iceberg_table(name).as_written / "data").glob("*.puffin"))
    assert files
    for path in files:
        content = path.read_bytes()
        footer = footer_of(content)
        stream = io.BytesIO()
        writer = PuffinWriter(stream)
        for blob in footer["blobs"]:
            offset, length = blob["offset"], blob["length"]
            record = content[offset : offset + length]
            place = DeletionVectorRange("a file", offset, length)
            vector = decode_deletion_vector(record, place, str(path), remedy="")
            again, announced = encode_deletion_vector(vector, VectorForm.BITMAP64)
            assert (again, announced) == (record, length)
            properties = blob["properties"]
            assert properties["cardinality"] == str(vector.cardinality)
            assert writer.add(
                blob["type"], again, fields=blob["fields"], properties=properties
            ) == (offset)
        size = writer.finish(footer["properties"])
        assert stream.getvalue() == content
        assert (writer.size, content[-size:][:4]) == (len(content), b"PFA1")
