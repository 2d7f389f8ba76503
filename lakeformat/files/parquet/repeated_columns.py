"""Which columns of a Parquet file hold the same as a column before: they are encoded once.

A primary key stands in a file twice, as ``_KEY_…`` and as a column of the table.
"""

from __future__ import annotations

from lakeformat.files.field_ids import parquet_schema
from lakeformat.files.file_writer import FileContent
from lakeformat.paimon.datafile.system_fields import KEY_PREFIX

__all__ = ["repeated_columns"]


def repeated_columns(content: FileContent) -> dict[str, str]:
    """The key columns of a table whose files have them in front as well, with the name there."""
    fields = {field.name: field for field in parquet_schema(content.fields)}
    found = {}
    for name in content.key_columns:
        field, key = fields[name], fields.get(KEY_PREFIX + name)
        if key is not None and (key.type, key.nullable) == (field.type, field.nullable):
            found[name] = key.name
    return found
