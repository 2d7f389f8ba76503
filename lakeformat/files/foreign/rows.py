# SPDX-License-Identifier: Apache-2.0
"""Reads files of other programs; no value is changed silently, except that floats are rounded.

Text is parsed by the type of the column. In a FLOAT or DOUBLE column, a number becomes the nearest
value of the type, or infinity if it is too large. ``007`` in a BIGINT column is 7. A value that
cannot be parsed is an error. A BYTES column takes the bytes of a CSV field.

Both engines of a job and the command line use this reader.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.files.foreign.csv_rows import read_csv
from lakeformat.files.foreign.dialect import CSV_AND_PLAIN, SourceFormat, TextDialect
from lakeformat.files.foreign.json_rows import read_json
from lakeformat.files.foreign.plain_copy import Opener, plain_copy
from lakeformat.files.foreign.text_checks import not_utf_8
from lakeformat.files.parquet.dictionary_columns import repeating_texts
from lakeformat.files.parquet.sound_footer import require_sound_footer
from lakeformat.types.row_numbers import with_first_number
from lakeformat.types.sentence import sentence

__all__ = ["naming", "read_rows"]


def read_rows(
    path: str,
    source_format: SourceFormat,
    columns: pa.Schema,
    dialect: TextDialect = CSV_AND_PLAIN,
    *,
    opener: Opener | None = None,
    encoded: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file; text is parsed by the types of ``columns``.

    The rows of a Parquet file have the columns and types of the file. Its columns in ``encoded``
    may be dictionary-encoded. ``opener`` opens a file in another storage; ``opener=None`` opens a
    file on this machine. Raise ``InvalidRequestError``, which names the file, for a value that
    cannot be parsed.
    """
    with naming(path), plain_copy(path, source_format, dialect, opener) as local:
        if source_format == "csv":
            yield from read_csv(local, columns, dialect)
        elif source_format == "json":
            yield from read_json(local, columns)
        else:
            few = _repeating_texts(local, encoded) if encoded else []
            with pyarrow.parquet.ParquetFile(local, read_dictionary=few) as file:
                yield from file.iter_batches()


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn errors about a file in a with block into ``InvalidRequestError`` with its path.

    These are decoding errors, and Arrow's errors about invalid, unsupported or missing data. An
    ``InvalidRequestError`` without the path gets it, too. Other errors of Arrow, such as
    ``ArrowTypeError``, pass unchanged.
    """
    try:
        yield
    except UnicodeDecodeError as reason:
        raise not_utf_8(path, reason) from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as reason:
        if "utf8" in str(reason).lower():
            raise not_utf_8(path, reason) from None
        said = sentence(str(reason).strip())
        raise InvalidRequestError(
            f"cannot read {path}: {said} Check the file and its format"
        ) from None
    except InvalidRequestError as reason:
        said = str(reason) if path in str(reason) else f"{path}: {reason}"
        said = with_first_number(said, "from 1, after any header")
        kind = UnsupportedError if isinstance(reason, UnsupportedError) else InvalidRequestError
        raise kind(said) from None


def _repeating_texts(path: str, encoded: Collection[str]) -> list[str]:
    with pyarrow.parquet.ParquetFile(path) as file:
        try:
            require_sound_footer(file.metadata, os.path.getsize(path))
        except OSError:  # pyarrow reads such a file below, and reports the damage
            return []
        return repeating_texts(file.metadata, file.schema_arrow, encoded)
