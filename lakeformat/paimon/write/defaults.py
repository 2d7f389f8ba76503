"""Default values of columns, which the schema stores as text."""

from __future__ import annotations

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.casts import cast_array
from lakeformat.types.types import STRING, DataField, with_nullability

__all__ = ["default_value"]

_QUOTE = "'"


def default_value(field: DataField) -> pa.Scalar | None:
    """Return the default of a column as a value of its type; None if it has none."""
    text = field.default_value
    if text is None:
        return None
    if text.startswith(_QUOTE) and text.endswith(_QUOTE) and len(text) > 1:
        text = text[1:-1]
    # A column that is NOT NULL takes the same casts.
    wanted = with_nullability(field.type, nullable=True)
    try:
        return cast_array(pa.array([text]), STRING, wanted).cast(to_arrow_type(wanted))[0]
    except (InvalidRequestError, UnsupportedError) as reason:
        raise UnsupportedError(
            f"column {field.name!r} has the default value {field.default_value!r}, which this "
            f"version cannot write: {reason}. Nothing was written; change the default with "
            "another engine"
        ) from None
