"""What is checked before a commit starts: a snapshot that cannot be read back is never made."""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.errors import InvalidRequestError
from lakeformat.type_rules import is_text

__all__ = ["check_arguments", "is_whole_number"]

_LONG = range(-(2**63), 2**63)


def check_arguments(watermark: int | None, properties: Mapping[str, str] | None) -> None:
    """Refuse what a snapshot file cannot hold."""
    if watermark is not None and (not is_whole_number(watermark) or watermark not in _LONG):
        raise InvalidRequestError(f"a watermark is a whole number of 64 bits, got {watermark!r}")
    if properties is not None and not isinstance(properties, Mapping):
        raise InvalidRequestError(f"properties are a mapping of text to text, got {properties!r}")
    for key, value in (properties or {}).items():
        if not is_text(key) or not is_text(value):
            raise InvalidRequestError(
                f"properties are text for text, got {key!r}: {value!r}; write str(value)"
            )


def is_whole_number(value: object) -> bool:
    """An int, and not a bool, which Python takes for one."""
    return isinstance(value, int) and not isinstance(value, bool)
