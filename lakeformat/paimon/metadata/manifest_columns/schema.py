# SPDX-License-Identifier: Apache-2.0
"""The Avro schema of manifests, and the columns for its fields."""

from __future__ import annotations

from typing import Any

from lakeformat.paimon.metadata.data_file_meta import DATA_FILE_FIELDS
from lakeformat.paimon.metadata.manifest_columns.shape import shape_of

__all__ = ["COLUMN_PATHS", "MANIFEST_SCHEMA", "MANIFEST_SHAPE"]

MANIFEST_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "org.apache.paimon.avro.generated.record",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_TOTAL_BUCKETS", "type": "int"},
        {
            "name": "_FILE",
            "type": {"type": "record", "name": "record__FILE", "fields": DATA_FILE_FIELDS},
        },
    ],
}

MANIFEST_SHAPE = {field.path: field for field in shape_of(MANIFEST_SCHEMA)}

COLUMN_PATHS = {
    "kind": "_KIND",
    "partition": "_PARTITION",
    "bucket": "_BUCKET",
    "total_buckets": "_TOTAL_BUCKETS",
    "file_name": "_FILE._FILE_NAME",
    "file_size": "_FILE._FILE_SIZE",
    "row_count": "_FILE._ROW_COUNT",
    "min_key": "_FILE._MIN_KEY",
    "max_key": "_FILE._MAX_KEY",
    "key_min_values": "_FILE._KEY_STATS._MIN_VALUES",
    "key_max_values": "_FILE._KEY_STATS._MAX_VALUES",
    "key_null_counts": "_FILE._KEY_STATS._NULL_COUNTS",
    "value_min_values": "_FILE._VALUE_STATS._MIN_VALUES",
    "value_max_values": "_FILE._VALUE_STATS._MAX_VALUES",
    "value_null_counts": "_FILE._VALUE_STATS._NULL_COUNTS",
    "min_sequence_number": "_FILE._MIN_SEQUENCE_NUMBER",
    "max_sequence_number": "_FILE._MAX_SEQUENCE_NUMBER",
    "schema_id": "_FILE._SCHEMA_ID",
    "level": "_FILE._LEVEL",
    "extra_files": "_FILE._EXTRA_FILES",
    "creation_time": "_FILE._CREATION_TIME",
    "delete_row_count": "_FILE._DELETE_ROW_COUNT",
    "embedded_file_index": "_FILE._EMBEDDED_FILE_INDEX",
    "file_source": "_FILE._FILE_SOURCE",
    "value_stats_cols": "_FILE._VALUE_STATS_COLS",
    "external_path": "_FILE._EXTERNAL_PATH",
    "first_row_id": "_FILE._FIRST_ROW_ID",
    "write_cols": "_FILE._WRITE_COLS",
    "write_cols_sequences": "_FILE._WRITE_COLS_SEQUENCES",
}
"""For each column name in this library: the field of the manifest."""
