# SPDX-License-Identifier: Apache-2.0
"""The choice of the columns that are read from a file: by name, or by a function of the file's
schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from lakeformat.files.missing_columns import require_columns

__all__ = ["ColumnChoice", "chosen_columns"]

ColumnChoice: TypeAlias = "list[str] | Callable[[pa.Schema], list[str]]"
"""The names of columns, or a function that returns them for the schema of a file.

The fields of that schema have the metadata of the file, such as field ids.
"""


def chosen_columns(choice: ColumnChoice, schema: pa.Schema) -> list[str]:
    """Return the names of the chosen columns; raise ``MissingColumnError`` if the file lacks
    one.
    """
    names = choice(schema) if callable(choice) else choice
    require_columns(names, schema.names)
    return names
