# SPDX-License-Identifier: Apache-2.0
"""The columns that data files of a primary-key table have in addition to those of the table."""

from __future__ import annotations

from dataclasses import replace

from lakeformat.types.types import DataField, TypeName, atomic, with_nullability

__all__ = ["KEY_PREFIX", "SEQUENCE_NUMBER", "SYSTEM_COLUMNS", "VALUE_KIND", "key_field"]

KEY_PREFIX = "_KEY_"
_KEY_ID_START = 1_073_741_823

SEQUENCE_NUMBER = DataField(
    2_147_483_646, "_SEQUENCE_NUMBER", atomic(TypeName.BIGINT, nullable=False)
)
"""The sequence number of a row: of two rows with one key, the newer row has the larger number.

If the option ``sequence.field`` is set, its columns are compared first.
"""

VALUE_KIND = DataField(2_147_483_645, "_VALUE_KIND", atomic(TypeName.TINYINT, nullable=False))
"""The kind of a row: 0 insert, 1 update before, 2 update after, 3 delete."""

SYSTEM_COLUMNS = frozenset({SEQUENCE_NUMBER.name, VALUE_KIND.name, "_LEVEL", "rowkind", "_ROW_ID"})
"""The names of the format's system columns, without those that begin with ``KEY_PREFIX``."""


def key_field(field: DataField) -> DataField:
    """Return the file's key column (``_KEY_<name>``) for a column of the primary key."""
    key_type = with_nullability(field.type, nullable=False)
    return replace(field, id=_KEY_ID_START + field.id, name=KEY_PREFIX + field.name, type=key_type)
