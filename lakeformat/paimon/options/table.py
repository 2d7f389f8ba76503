# SPDX-License-Identifier: Apache-2.0
"""The options of one table, read by their declarations.

The declarations, in a file per subject, also define how values are parsed and checked. The page
``docs/reference/options.md`` is made from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options.commit import AT_TABLE, PUBLISHED_PREFIX
from lakeformat.paimon.options.declared import (
    DeclaredOptions,
    declared_options,
    find_option,
    used_by,
)
from lakeformat.paimon.options.foreign import (
    ForeignClass,
    ForeignOption,
    Trait,
    find_foreign,
)
from lakeformat.paimon.options.merge import AggregateOptions, MergeOptions
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.options.option import ColumnOption, Option

__all__ = ["TableOptions"]

T = TypeVar("T")
_PUBLISHED = (AT_TABLE, "hadoop-catalog", "hive-catalog", "rest-catalog")
_OF_REST_CATALOG = f"{PUBLISHED_PREFIX}rest."

_ON_WRITE = ("rowkind.field", "ignore-delete", "ignore-update-before")
_MERGING = frozenset(
    option
    for owner in (AggregateOptions, MergeOptions)
    for option in vars(owner).values()
    if isinstance(option, Option) and option.key not in _ON_WRITE
)

_TARGET_OF_LEVELS = "128 mb"
"""The default of ``target-file-size`` for primary-key tables."""


class TableOptions(DeclaredOptions):
    """The options of one table as typed attributes; undeclared keys are kept unchanged."""

    def __init__(self, raw: Mapping[str, str] | None = None) -> None:
        self._raw = dict(raw or {})

    @property
    def level_count(self) -> int:
        """The number of levels of a primary-key table.

        The option ``num-levels``; if it is not set, the compaction trigger plus 1.
        """
        levels = self.num_levels
        return self.compaction_trigger + 1 if levels is None else levels

    @property
    def merging(self) -> dict[str, Any]:
        """The options that decide how rows of one key are merged, by key, without defaults.

        Empty if the last row of a key replaces the earlier ones.
        """
        found: dict[str, Any] = {}
        for key, text in self._raw.items():
            option = find_option(key)
            if option in _MERGING:
                value, default = option.parse(text, key), option.parse(option.default)
                if value != default:
                    names = isinstance(value, tuple)
                    found[key] = tuple(name.strip() for name in value) if names else value
        return found

    @property
    def keeps_moved_rows(self) -> bool:
        """True if a row that moves to another partition also remains in its old partition."""
        return self.merge_engine == "deduplicate" and self.ignore_delete

    @property
    def publishes_iceberg(self) -> bool:
        """True if the table is published as Iceberg metadata."""
        return self.iceberg_storage in _PUBLISHED

    @property
    def iceberg_is_at_table(self) -> bool:
        """True if published Iceberg metadata lies in the table's own directory.

        If False, it lies in a directory that the tables of a warehouse share.
        """
        place = self.iceberg_storage_location
        return place == AT_TABLE or (not place and self.iceberg_storage == AT_TABLE)

    @property
    def iceberg_storage(self) -> str:
        """The value of ``metadata.iceberg.storage`` in lower case; empty if it is not set."""
        return self._raw.get("metadata.iceberg.storage", "").strip().lower()

    @property
    def looks_up(self) -> bool:
        """True if compactions of a primary-key table look up older rows with a new row's key."""
        return (
            self.changelog_producer == "lookup"
            or self.merge_engine == "first-row"
            or self.deletion_vectors_enabled
            or self.force_lookup
        )

    @property
    def makes_changelog(self) -> bool:
        """True if compactions write the changelog of the table."""
        return self.changelog_producer in ("lookup", "full-compaction")

    def strategy_of_changelog(self) -> str:
        """Return ``minor`` or ``full``, the cheapest compaction that completes the changelog.

        Raise InvalidRequestError if compactions do not write the changelog.
        """
        if not self.makes_changelog:
            raise InvalidRequestError(
                f"option 'changelog-producer' is {self.changelog_producer!r}, but `lake changelog` "
                "works only with 'lookup' and 'full-compaction'. To compact the table, use `lake "
                "compact`. To set another producer, follow docs/changelog.md"
            )
        return "minor" if self.changelog_producer == "lookup" else "full"

    def aggregate_function_of(self, column: str) -> str | None:
        """Return the aggregate function that the options give to a column; None without a function.

        Do not call this for columns of the primary key or of ``sequence.field``: these have no
        function, but the result may be the default function of the table.
        """
        named = self.of_column(TableOptions.aggregate_function, column)
        return named or self.default_aggregate_function or None

    @property
    def asks_for_file_indexes(self) -> bool:
        """True if any option beginning with ``file-index.`` is set."""
        return any(key.startswith("file-index.") for key in self._raw)

    def differing(self, asked: Mapping[str, str]) -> dict[str, tuple[str | None, str]]:
        """Return the options that have other values in ``asked`` than in this table, by key.

        Each maps to a pair: the value of this table, and the value in ``asked``. If the table does
        not set the option, the first value is the default; None for an undeclared option, and for
        an option of a single column.
        """
        found = {}
        for key, value in asked.items():
            option = find_option(key)
            current = self._raw.get(key)
            if option is not None and not isinstance(option, ColumnOption):
                current = self.text(option)
            same = current == value or (
                option is not None
                and current is not None
                and option.parse(current, key if key in self._raw else None)
                == option.parse(value, key)
            )
            if not same:
                found[key] = (current, value)
        return found

    def of_level(self, level: int) -> TableOptions:
        """Return the options for the data files of one level of a primary-key table."""
        return self._with(
            {
                TableOptions.target_file_size_bytes: self._raw.get(
                    TableOptions.target_file_size_bytes.key, _TARGET_OF_LEVELS
                ),
                TableOptions.file_format: self.file_format_per_level.get(level),
                TableOptions.file_compression: self.file_compression_per_level.get(level),
                TableOptions.statistics_mode: self.statistics_mode_per_level.get(level),
            }
        )

    def of_changelog(self, level: int) -> TableOptions:
        """Return the options for changelog files written together with data files of ``level``."""
        return self.of_level(level)._with(
            {
                TableOptions.file_format: self.changelog_file_format,
                TableOptions.file_compression: self.changelog_file_compression,
                TableOptions.statistics_mode: self.changelog_statistics_mode,
            }
        )

    def of_postponed(self, prefix: str, file_format: str) -> TableOptions:
        """Return the options for data files of the postponed bucket, which have no statistics."""
        return self.of_level(0)._with(
            {
                TableOptions.data_file_prefix: prefix,
                TableOptions.file_format: file_format,
                TableOptions.statistics_mode: "none",
            }
        )

    def _with(self, values: Mapping[Option[Any], str | None]) -> TableOptions:
        known = {option.key: value for option, value in values.items() if value}
        return TableOptions({**self._raw, **known})

    def text(self, option: Option[Any]) -> str:
        """Return the text of an option; its default if the table does not set it."""
        for key in (option.key, *option.older_keys):
            if key in self._raw:
                return self._raw[key]
        return option.default

    def of_column(self, option: Option[T], column: str) -> T | None:
        """Return the value of a column option for one column; None if it is not set."""
        assert isinstance(option, ColumnOption)
        key = option.key_of(column)
        return option.parse(self._raw[key], key) if key in self._raw else None

    def to_dict(self) -> dict[str, str]:
        """Return the options that the table sets explicitly, declared or not."""
        return dict(self._raw)

    def unknown(self) -> list[str]:
        """Return the keys that this library does not know, sorted.

        Keys that begin with ``metadata.iceberg.rest.`` count as known: the publication of the table
        in an Iceberg REST catalog reads them.
        """
        return sorted(
            key
            for key in self._raw
            if not key.startswith(_OF_REST_CATALOG)
            and find_option(key) is None
            and find_foreign(key) is None
        )

    def ignored_layout(self) -> list[str]:
        """Return the keys, sorted, of options that change only the files that other engines write.

        This library ignores these options.
        """
        found = ((key, find_foreign(key)) for key in self._raw if find_option(key) is None)
        return sorted(key for key, option in found if option and option.kind is ForeignClass.LAYOUT)

    def forbidding(
        self, operation: Operation, traits: frozenset[Trait]
    ) -> list[tuple[str, ForeignOption]]:
        """Return the key and the declaration of each option that forbids the operation.

        ``traits`` are the properties of the table. The result is sorted by key.
        """
        found = []
        for key, value in self._raw.items():
            if find_option(key) is not None or (option := find_foreign(key)) is None:
                continue
            if option.forbids(operation, value, traits):
                found.append((key, option))
        return sorted(found, key=lambda each: each[0])

    def validate(self) -> None:
        """Raise InvalidRequestError for an unsupported option, a misspelt key or an invalid value.

        Call this method for options that a caller of this library gives. Tables of other engines
        may have more options.
        """
        from lakeformat.paimon.options.spelling import check_own_key  # only for given options

        for key, value in self._raw.items():
            if find_option(key) is not None:
                continue
            check_own_key(key, declared_options())
            option = find_foreign(key)
            if option is not None and not option.is_harmless(value):
                if likely := option.likely_value(value):
                    raise InvalidRequestError(f"option {key!r} cannot be {value!r}{likely}")
                raise InvalidRequestError(
                    f"option {key!r} {option.says}, which this version does not support: remove "
                    "it, or create and maintain the table with another engine"
                )
        self.check_values()

    def misread(self) -> dict[str, InvalidRequestError]:
        """Return, by key, the InvalidRequestError of each option whose value cannot be parsed."""
        found = {}
        for key, text in self._raw.items():
            if (option := find_option(key)) is not None:
                try:
                    option.parse(text, key)
                except InvalidRequestError as error:
                    found[key] = error
        return found

    @staticmethod
    def uses(key: str, operation: Operation) -> bool:
        """Return True if the option ``key`` is checked before ``operation``."""
        return find_option(key) in used_by(operation)

    def check_values(self, operation: Operation | None = None) -> None:
        """Raise InvalidRequestError if an option has an invalid value.

        Only options that are checked before ``operation`` are read; ``operation=None`` means all.
        """
        used = used_by(operation)
        for key, text in self._raw.items():
            option = find_option(key)
            if option is None or option not in used:
                continue
            if isinstance(option, ColumnOption) or text == self.text(option):
                option.parse(text, key)
