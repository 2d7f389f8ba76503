# SPDX-License-Identifier: Apache-2.0
"""Finds the declarations of all options, by key and by the operation that reads them."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from lakeformat.paimon.options.bucket import BucketOptions
from lakeformat.paimon.options.changelog import ChangelogOptions
from lakeformat.paimon.options.commit import CommittingOptions, PublicationOptions
from lakeformat.paimon.options.compaction import CompactionOptions
from lakeformat.paimon.options.expiry import ExpiryOptions
from lakeformat.paimon.options.file import FileOptions
from lakeformat.paimon.options.file_index import FileIndexOptions
from lakeformat.paimon.options.merge import MergeOptions
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.options.option import Option
from lakeformat.paimon.options.partition import PartitionOptions
from lakeformat.paimon.options.read import ReadOptions
from lakeformat.paimon.options.schema import SchemaOptions
from lakeformat.paimon.options.tag import TagOptions
from lakeformat.paimon.options.time_travel import TimeTravelOptions
from lakeformat.paimon.options.write import WriteOptions

__all__ = ["DeclaredOptions", "declared_options", "find_option", "used_by"]


class DeclaredOptions(
    BucketOptions,
    ChangelogOptions,
    CommittingOptions,
    CompactionOptions,
    ExpiryOptions,
    FileIndexOptions,
    FileOptions,
    MergeOptions,
    PartitionOptions,
    PublicationOptions,
    ReadOptions,
    SchemaOptions,
    TagOptions,
    TimeTravelOptions,
    WriteOptions,
):
    """All options of a table; each base class declares the options of one subject."""


@cache
def declared_options() -> tuple[Option[Any], ...]:
    """Return the declarations of all options, sorted by key."""
    members = (vars(owner).values() for owner in DeclaredOptions.__mro__)
    found = [value for values in members for value in values if isinstance(value, Option)]
    return tuple(sorted(found, key=lambda option: option.key))


@lru_cache(maxsize=4096)
def find_option(key: str) -> Option[Any] | None:
    """Return the declaration of the option whose key or older name is ``key``; None if there is
    none.
    """
    return next((option for option in declared_options() if option.sets(key)), None)


@cache
def used_by(operation: Operation | None) -> frozenset[Option[Any]]:
    """Return the options that are checked before an operation; all for ``operation=None``.

    They are checked first because the operation may read them in a later step, when an error would
    be too late.
    """
    if operation is None:
        return frozenset(declared_options())
    if operation in (Operation.WRITE, Operation.COMPACT):
        others = (
            ExpiryOptions,
            PartitionOptions,
            PublicationOptions,
            TagOptions,
            TimeTravelOptions,
        )
        return frozenset(declared_options()).difference(*map(_of, others))
    if operation is Operation.COMMIT:
        starts = ("commit.", "manifest.")
        return frozenset(each for each in declared_options() if each.key.startswith(starts))
    # The options of the retention are not here: an expiry reads and checks them first.
    if operation is Operation.EXPIRE:
        return _named("file-operation.thread-num", "snapshot.clean-empty-directories")
    if operation is Operation.TAG:
        return _named("tag.default-time-retained", "tag.create-success-file")
    return frozenset()


def _of(group: type) -> tuple[Option[Any], ...]:
    return tuple(value for value in vars(group).values() if isinstance(value, Option))


def _named(*keys: str) -> frozenset[Option[Any]]:
    return frozenset(each for each in declared_options() if each.key in keys)
