# SPDX-License-Identifier: Apache-2.0
"""The declaration of an option: key, type, default and description."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Generic, Protocol, TypeVar, overload

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options.kinds import Kind

__all__ = ["COLUMN", "ColumnOption", "Declaration", "Group", "Option", "OptionTexts"]

T = TypeVar("T")

_MOST_SHOWN = 200
"""The number of characters after which an error message truncates a value."""


class Group(StrEnum):
    """The group under which the documentation lists an option."""

    BEHAVIOUR = "behaviour"
    PERFORMANCE = "performance"


class Declaration(Generic[T]):
    """The declaration of one option, which parses and describes its values."""

    noun: ClassVar[str] = "option"
    """The word for this declaration in error messages."""

    def __init__(self, key: str, kind: Kind[T], default: str, description: str) -> None:
        self.key = key
        self.kind = kind
        self.default = default
        self.description = description

    def parse(self, text: str, key: str | None = None) -> T:
        """Return the typed value of a text; raise InvalidRequestError if the text is not valid.

        The error names the option, its text, and the kind of text that is valid. ``key`` is the key
        under which the text is set; without it, the error names the declared key.
        """
        try:
            return self.kind.parse(text)
        except ValueError as reason:
            named = repr(key or self.key)
            shown = repr(text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…")
            raise InvalidRequestError(
                f"{self.noun} {named} is {shown}, but must be {self.kind.name}: {reason}"
            ) from None


class OptionTexts(Protocol):
    """An object that has the texts of options, such as ``TableOptions``."""

    def text(self, option: Option[Any]) -> str:
        """Return the text of an option; its default if it is not set."""
        ...


class Option(Declaration[T]):
    """An option, declared as an attribute of a class such as ``TableOptions``.

    On an instance of that class, the attribute is the typed value of the option.
    """

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
        """Declare an option.

        If ``key`` is not set, its older names ``older_keys`` are read.
        """
        super().__init__(key, kind, default, description)
        self.group = group
        self.mutable = mutable
        self.older_keys = older_keys
        self._last: tuple[str, T] | None = None

    def sets(self, key: str) -> bool:
        """Return True if ``key`` is the key of this option or one of its older names."""
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
            # The last value is kept: most tables have the same text, and writers read it for every
            # file.
            last = self._last = text, self.parse(text)
        return last[1]


class ColumnOption(Option[T]):
    """An option with one value per column, such as ``fields.price.stats-mode``.

    Its declared key has ``<column>`` in place of the column's name. ``TableOptions.of_column``
    reads the value.
    """

    def key_of(self, column: str) -> str:
        """Return the key of this option for one column."""
        return self.key.replace(COLUMN, column)

    def sets(self, key: str) -> bool:
        """Return True if ``key`` is this option for one column."""
        start, end = self.key.split(COLUMN)
        return key.startswith(start) and key.endswith(end) and len(key) > len(start + end)


COLUMN = "<column>"
