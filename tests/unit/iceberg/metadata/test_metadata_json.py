"""Table metadata is written whole: every member of the format, and those that are unknown."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.metadata.metadata_file import decode_metadata
from lakeformat.iceberg.metadata.metadata_json import (
    encode_metadata,
    file_ending,
    metadata_to_json,
)
from lakeformat.iceberg.metadata.table_metadata import metadata_from_json
from tests.unit.iceberg.metadata.test_table_metadata import (
    OF_VERSION_1,
    OF_VERSION_2,
    OF_VERSION_3,
    SCHEMA,
    SNAPSHOT,
)
from tests.unit.iceberg.path_table import empty_metadata

ALWAYS = {
    *("format-version", "table-uuid", "location", "last-sequence-number", "last-updated-ms"),
    *("last-column-id", "schemas", "current-schema-id", "partition-specs", "default-spec-id"),
    *("last-partition-id", "sort-orders", "default-sort-order-id", "properties", "snapshots"),
    *("current-snapshot-id", "refs", "snapshot-log", "metadata-log", "statistics"),
    "partition-statistics",
}


def rewritten(members: dict) -> dict:
    return metadata_to_json(metadata_from_json(members))


@pytest.mark.parametrize(
    ("members", "added"),
    [(OF_VERSION_2, set()), (OF_VERSION_3, {"next-row-id"})],
    ids=["v2", "v3"],
)
def test_every_member_of_the_format_is_written(members, added):
    assert rewritten(members).keys() == ALWAYS | added


def test_version_1_has_its_schema_and_partition_fields_also_in_the_old_members():
    written = rewritten(OF_VERSION_1)
    assert written["schema"] == SCHEMA
    assert written["partition-spec"] == []
    assert written["schemas"] == [SCHEMA]
    assert written["last-partition-id"] == 999
    assert "last-sequence-number" not in written


def test_members_that_this_version_does_not_know_are_kept():
    of_file = {"snapshot-id": 7, "statistics-path": "file:///t/metadata/s", "owner": "x"}
    sizes = {"file-size-in-bytes": 9, "file-footer-size-in-bytes": 4}
    members = OF_VERSION_2 | {
        "added-later": {"a": [1]},
        "snapshots": [SNAPSHOT | {"added-later": 5}],
        "refs": {"main": {"snapshot-id": 7, "type": "branch", "added-later": "b"}},
        "statistics": [of_file | sizes | {"blob-metadata": [{"type": "unknown-v9"}]}],
        "partition-statistics": [of_file | {"file-size-in-bytes": 9}],
    }
    written = rewritten(members)
    assert {key: written[key] for key in members} == members


@pytest.mark.parametrize(("version", "current"), [(1, -1), (2, -1), (3, None)])
def test_a_table_without_snapshot_says_so_as_java_does(version, current):
    written = metadata_to_json(empty_metadata(version=version))
    assert written["current-snapshot-id"] == current
    assert metadata_from_json(written).current_snapshot_id is None


def test_the_codec_is_a_property_of_the_table():
    plain = empty_metadata()
    packed = replace(plain, properties={"write.metadata.compression-codec": "GZIP"})
    assert file_ending(plain) == ".metadata.json"
    assert file_ending(packed) == ".gz.metadata.json"
    content = encode_metadata(packed)
    assert json.loads(gzip.decompress(content)) == metadata_to_json(packed)
    assert decode_metadata(content, "v1.gz.metadata.json") == packed
    other = replace(plain, properties={"write.metadata.compression-codec": "zstd"})
    with pytest.raises(InvalidRequestError, match=r"is 'zstd'.*only the codecs none, gzip"):
        encode_metadata(other)
    assert file_ending(other) == ".metadata.json"
    assert encode_metadata(packed, ".metadata.json").startswith(b"{")
    assert gzip.decompress(encode_metadata(plain, ".gz.metadata.json")).startswith(b"{")
