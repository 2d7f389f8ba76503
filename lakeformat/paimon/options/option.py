"""How an option is declared, whatever it is an option of: key, type, default and meaning."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, ClassVar, Generic, Protocol, TypeVar, overload

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options.kinds import Kind

__all__ = ["COLUMN", "ColumnOption", "Declaration", "Group", "Option", "OptionTexts", "closest"]

T = TypeVar("T")

_MOST_SHOWN = 200
"""Characters of a value that an error repeats at most."""


class Group(StrEnum):
    """Why somebody sets an option."""

    BEHAVIOUR = "behaviour"
    PERFORMANCE = "performance"


class Declaration(Generic[T]):
    """One declared option."""

    noun: ClassVar[str] = "option"
    """What an error calls it."""

    def __init__(self, key: str, kind: Kind[T], default: str, description: str) -> None:
        self.key = key
        self.kind = kind
        self.default = default
        self.description = description

    def parse(self, text: str) -> T:
        """The typed value of a text, or an error that names the option."""
        try:
            return self.kind.parse(text)
        except ValueError as reason:
            shown = repr(text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…")
            raise InvalidRequestError(
                f"{self.noun} {self.key!r} is {shown}, but must be {self.kind.name}: {reason}"
            ) from None


class OptionTexts(Protocol):
    """What holds the texts of options."""

    def text(self, option: Option[Any]) -> str:
        """The text of an option, or its default."""
        ...


class Option(Declaration[T]):
    """An option of a table; read on a ``TableOptions`` it is the typed value."""

    def __init__(
        self,
        key: str,
        kind: Kind[T],
        default: str,
        description: str,
        *,
        group: Group = Group.BEHAVIOUR,
        mutable: bool = True,
        older_keys: tuple[str, ...] = (),
    ) -> None:
        """``older_keys`` mean the same where a table does not set ``key``."""
        super().__init__(key, kind, default, description)
        self.group = group
        self.mutable = mutable
        self.older_keys = older_keys
        self._last: tuple[str, T] | None = None

    def sets(self, key: str) -> bool:
        """Whether a key of a table is this option."""
        return key in (self.key, *self.older_keys)

    @overload
    def __get__(self, instance: None, owner: type[OptionTexts]) -> Option[T]: ...
    @overload
    def __get__(self, instance: OptionTexts, owner: type[OptionTexts]) -> T: ...
    def __get__(self, instance: OptionTexts | None, owner: type[OptionTexts]) -> Option[T] | T:
        if instance is None:
            return self
        text, last = instance.text(self), self._last
        if last is None or last[0] != text:
            # Most tables say the same, and writers ask for every file.
            last = self._last = text, self.parse(text)
        return last[1]


class ColumnOption(Option[T]):
    """An option with one value per column, such as ``fields.price.stats-mode``.

    Its key has ``<column>`` where the name goes; it is read with ``TableOptions.of_column``.
    """

    def key_of(self, column: str) -> str:
        """The key that sets it for one column."""
        return self.key.replace(COLUMN, column)

    def sets(self, key: str) -> bool:
        """Whether a key of a table is this option for some column."""
        start, end = self.key.split(COLUMN)
        return key.startswith(start) and key.endswith(end) and len(key) > len(start + end)


COLUMN = "<column>"


def closest(key: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown option: which one may have been meant."""
    close = difflib.get_close_matches(key, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
