# SPDX-License-Identifier: Apache-2.0
"""The dialect of a text file: its delimiter, quotes, encoding, compression and so on.

The attributes of ``TextDialect`` are options of ``lake write``, and keys in the request of the job
``ingest``. This module does not import Arrow, so a scheduler without Arrow can check a dialect.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import Any, Literal, TypeAlias, get_args

from lakeformat.errors import InvalidRequestError

__all__ = [
    "CSV_AND_PLAIN",
    "DIALECT_NAMES",
    "Compression",
    "SourceFormat",
    "TextDialect",
    "format_of",
    "unpacked_name",
]

SourceFormat: TypeAlias = Literal["parquet", "csv", "json"]
Compression: TypeAlias = Literal["none", "gzip", "bz2", "zstd"]

_ENDINGS: dict[str, SourceFormat] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_PACKED: dict[str, Compression] = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_PACKED_OTHERWISE = (".br", ".lz4", ".snappy", ".xz", ".zip")
_TAB = r"\t"
_UTF_8 = "utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDialect:
    """The dialect of text files. Only CSV files use ``delimiter``, ``quote``, ``escape``,
    ``header`` and ``null_values``.
    """

    delimiter: str = ","
    quote: str = '"'
    """The character around quoted values; inside of a quoted value it is written twice. "" if no
    value is quoted.
    """
    escape: str = ""
    """The character before a delimiter or quote that is part of a value; "" if there is none."""
    header: bool = True
    """True if the first line names the columns; False if the values have the order of the table's
    columns.
    """
    null_values: Sequence[str] = ("",)
    """The unquoted texts that mean NULL."""
    encoding: str = _UTF_8
    compression: Compression | None = None
    """The compression of the files; if None, the ending of each file's name shows it."""

    def __post_init__(self) -> None:
        given = _TAB if self.delimiter == _TAB else None
        object.__setattr__(self, "delimiter", "\t" if given else self.delimiter)
        object.__setattr__(self, "null_values", _texts(self.null_values))
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        self._check_characters()
        if not isinstance(self.header, bool):
            raise InvalidRequestError(f"header must be true or false, got {self.header!r}")
        if self.compression is not None and self.compression not in get_args(Compression):
            raise InvalidRequestError(
                f"compression must be one of {', '.join(get_args(Compression))}, got "
                f"{self.compression!r}"
            )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> TextDialect:
        """Return the dialect with the given values, by attribute name; None means the default."""
        said = {name: given.get(name) for name in DIALECT_NAMES}
        return cls(**{name: value for name, value in said.items() if value is not None})

    def require_fits(self, path: str, source_format: SourceFormat) -> None:
        """Raise ``InvalidRequestError`` for a setting that has no effect on a file of this
        format.
        """
        allowed = {"csv": DIALECT_NAMES, "json": ("encoding", "compression")}
        for name in DIALECT_NAMES:
            is_given = getattr(self, name) != getattr(CSV_AND_PLAIN, name)
            if is_given and name not in allowed.get(source_format, ("compression",)):
                raise InvalidRequestError(
                    f"{path} is {source_format}, where {name} has no meaning: leave {name} out"
                )

    @property
    def is_utf_8(self) -> bool:
        """True if the encoding is UTF-8, so that the file need not be decoded first."""
        return self.encoding == _UTF_8

    def compression_of(self, path: str) -> Compression:
        """Return the compression of a file: that of the dialect, else that of the name's ending,
        else ``none``.

        Raise ``InvalidRequestError`` for an ending of a compression that cannot be read, such as
        ``.zip``.
        """
        if self.compression is not None:
            return self.compression
        ending = PurePath(path).suffix.lower()
        if ending in _PACKED_OTHERWISE:  # Arrow would unpack some of them without a check
            raise InvalidRequestError(
                f"{path} has a compression that cannot be read: decompress it, or compress it as "
                f"{', '.join(_PACKED)}"
            )
        return _PACKED.get(ending, "none")

    def _check_characters(self) -> None:
        for name in ("delimiter", "quote", "escape"):
            value = getattr(self, name)
            is_one = isinstance(value, str) and len(value) == 1 and value.isascii()
            if not ((is_one and value not in "\r\n") or (value == "" and name != "delimiter")):
                raise InvalidRequestError(
                    f"{name} must be one ASCII character, and not a line break"
                    f"{'' if name == 'delimiter' else ', or empty to use none'}, got {value!r}"
                )
        used = [value for value in (self.delimiter, self.quote, self.escape) if value]
        if len({*used}) < len(used):
            raise InvalidRequestError(
                f"delimiter, quote and escape must differ from each other, got {self.delimiter!r}, "
                f"{self.quote!r} and {self.escape!r}"
            )
        for value in self.null_values:
            if self.escape and self.escape in value:
                raise InvalidRequestError(
                    f"null_values contains {value!r}, but the reader removes the escape "
                    f"{self.escape!r} from values before it compares them: leave escape out, or "
                    "write the value without the escape"
                )


def format_of(path: str) -> SourceFormat:
    """Return the format that the ending of a file's name shows; an ending like ``.gz`` is ignored.

    Raise ``InvalidRequestError`` for an unknown ending.
    """
    ending = PurePath(unpacked_name(path)).suffix.lower()
    if ending not in _ENDINGS:
        raise InvalidRequestError(
            f"the format of {path!r} is unknown: use a name that ends in {', '.join(_ENDINGS)}, "
            "or give the format. The name of a compressed file may have one more ending, one of "
            f"{', '.join(_PACKED)}, as in .csv.gz"
        )
    return _ENDINGS[ending]


def unpacked_name(path: str) -> str:
    """Return a path without the ending that names its compression."""
    ending = PurePath(path).suffix
    return path[: -len(ending)] if ending.lower() in _PACKED else path


def _texts(values: Sequence[str]) -> tuple[str, ...]:
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise InvalidRequestError(f"null_values must be a list of strings, got {values!r}")
    return tuple(values)


def _encoding(name: str) -> str:
    try:
        found = codecs.lookup(name)
    except (LookupError, TypeError, ValueError):
        raise InvalidRequestError(
            f"encoding {name!r} is not known: write utf-8, utf-16, latin-1, cp1252 or another "
            "encoding of Python"
        ) from None
    if not getattr(found, "_is_text_encoding", True):  # such as base64
        raise InvalidRequestError(
            f"encoding {name!r} is not a text encoding: write utf-8 or latin-1"
        )
    return found.name


CSV_AND_PLAIN = TextDialect()
"""CSV with commas and a header in UTF-8; the ending of a file's name gives its compression."""
DIALECT_NAMES = tuple(field.name for field in fields(TextDialect))
