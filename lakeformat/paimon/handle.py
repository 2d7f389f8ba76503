# SPDX-License-Identifier: Apache-2.0
"""The handle of a table for every operation: storage, layout, schema and environment."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakeformat.environment import Environment
from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.layout import DATABASE_SUFFIX, MAIN_BRANCH, TableLayout
from lakeformat.paimon.metadata.schema_file import latest_schema_id, read_schema
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.foreign import Trait
from lakeformat.paimon.options.kinds import UNAWARE_BUCKET
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import NO_ROOTS, ExternalRoots, Storage
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from lakeformat.tables.commit_observer import CommitObserver, ObservedFiles, ObserverLag

__all__ = [
    "READ_THROUGH",
    "TableHandle",
    "crosses_partitions",
    "has_hash_index",
    "read_through",
    "require_allowed",
    "require_no_chain",
    "require_writable",
    "traits_of",
    "with_newest_schema",
]

CHAIN_TABLE = "chain-table.enabled"
_CHAIN = ("scan.fallback-snapshot-branch", "scan.fallback-delta-branch")
_SINGLE = ("scan.fallback-branch", "scan.primary-branch")
READ_THROUGH = (*_SINGLE, *_CHAIN)
"""The options that name a branch whose rows are read together with those of another branch."""

_DONE = {
    Operation.READ: "read",
    Operation.CHANGES: "read for changes",
    Operation.WRITE: "written",
    Operation.COMPACT: "compacted",
    Operation.COMMIT: "committed to",
    Operation.EXPIRE: "expired",
    Operation.TAG: "tagged",
}

_OBSERVED = frozenset(Operation) - {Operation.READ, Operation.CHANGES}


@dataclass(frozen=True, slots=True)
class TableHandle:
    """An opened table or branch, with one of its schemas."""

    storage: Storage
    layout: TableLayout
    schema: TableSchema
    environment: Environment
    external_roots: ExternalRoots = NO_ROOTS
    """The directories outside of the table in which the caller allows files of the table."""
    external_paths: str | None = None
    """The value of ``data-file.external-paths`` in the newest schema when the table was opened.

    None: use the value in ``schema``, which may be an older one.
    """
    observer: CommitObserver[TableHandle] | None = field(default=None, repr=False, compare=False)
    """Publishes each commit as Iceberg metadata.

    None: a table whose options require this publication can only be read.
    """
    options: TableOptions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", self.schema.table_options)

    @property
    def uri(self) -> str:
        """The address of the table's directory, for messages."""
        return self.storage.uri(self.layout.root)

    @property
    def name(self) -> str:
        """The table's name in commands: ``shop.orders``; outside of a warehouse, its address.

        For a branch, ``$branch_<name>`` follows.
        """
        parents, _, table = self.layout.root.rpartition("/")
        database = parents.rpartition("/")[2]
        name = self.uri
        if database.endswith(DATABASE_SUFFIX):
            name = f"{database.removesuffix(DATABASE_SUFFIX)}.{table}"
        branch = self.layout.branch
        return name if branch == MAIN_BRANCH else f"{name}$branch_{branch}"

    def observe_commit(self) -> None:
        """Publish the newest snapshot as Iceberg metadata, if a table option requires it."""
        if self.observer is not None and self.options.publishes_iceberg:
            self.observer.after_commit(self)

    def observe_upkeep(self) -> None:
        """Publish changed tags and expired snapshots as Iceberg metadata, if a table option
        requires it.
        """
        if self.observer is not None and self.options.publishes_iceberg:
            self.observer.after_upkeep(self)

    def publication_lag(self) -> ObserverLag | None:
        """Return the lag of the table's Iceberg metadata; None if the table publishes none."""
        if self.observer is None or not self.options.publishes_iceberg:
            return None
        return self.observer.lag(self)

    def require_published(self) -> None:
        """Publish the newest state as Iceberg metadata before files are deleted.

        Do nothing for a table without Iceberg metadata. If the publication fails, its LakeError is
        raised.
        """
        if self.observer is not None and self.options.publishes_iceberg:
            self.observer.before_removal(self)

    def observed_files(self) -> ObservedFiles | None:
        """Return the files that the Iceberg metadata needs; None if the table publishes none."""
        if self.observer is None or not self.options.publishes_iceberg:
            return None
        return self.observer.files(self)

    @property
    def argument(self) -> str:
        """The table's name, quoted for a shell, for commands in messages."""
        return shlex.quote(self.name)


def with_newest_schema(handle: TableHandle) -> TableHandle:
    """Return the handle with the newest schema of its branch; unchanged if the branch has none.

    Call this after you read a snapshot: then no file of the snapshot has a newer schema.
    """
    newest = latest_schema_id(handle.storage, handle.layout)
    if newest is None or newest == handle.schema.id:
        return handle
    return replace(handle, schema=read_schema(handle.storage, handle.layout, newest))


def is_unaware(handle: TableHandle) -> bool:
    """Return True for a table without primary key and with ``'bucket' = '-1'``."""
    return not handle.schema.primary_keys and handle.options.bucket == UNAWARE_BUCKET


def crosses_partitions(handle: TableHandle) -> bool:
    """Return True if the primary key lacks a partition column.

    Then a new row may be in another partition than the old row of its key, and a writer must delete
    the old row in the old partition.
    """
    keys = handle.schema.primary_keys
    return bool(keys) and not {*handle.schema.partition_keys} <= {*keys}


def has_hash_index(handle: TableHandle) -> bool:
    """Return True for a table with dynamic buckets whose primary key has all partition columns.

    Hash index files then record the bucket of each key.
    """
    is_dynamic = bool(handle.schema.primary_keys) and handle.options.bucket == UNAWARE_BUCKET
    return is_dynamic and not crosses_partitions(handle)


def traits_of(handle: TableHandle) -> frozenset[Trait]:
    """Return the traits of a table that some options depend on: keyed, main branch, partitioned."""
    there = {
        Trait.KEYED: bool(handle.schema.primary_keys),
        Trait.MAIN: handle.layout.branch == MAIN_BRANCH,
        Trait.PARTITIONED: bool(handle.schema.partition_keys),
    }
    return frozenset(trait for trait, is_there in there.items() if is_there)


def require_allowed(handle: TableHandle, operation: Operation) -> None:
    """Raise UnsupportedError, which names the option, if an option forbids the operation.

    Raise InvalidRequestError if an option that the operation uses has an invalid value.
    """
    if operation is not Operation.TAG:
        require_no_chain(handle)
    if operation in (Operation.WRITE, Operation.COMPACT, Operation.COMMIT):
        _require_no_link(handle)
    options = handle.options
    if operation in _OBSERVED and options.publishes_iceberg:
        _require_observed(handle)
    if found := options.forbidding(operation, traits_of(handle)):
        values = options.to_dict()
        reasons = "; ".join(f"{key!r} = {values[key]!r} {option.says}" for key, option in found)
        advice = _sentence("; ".join(dict.fromkeys(option.advice for _, option in found)))
        refusal = UnsupportedError(
            f"{handle.uri} cannot be {_DONE[operation]} by this version: {reasons}. {advice}. "
            "Nothing was changed"
        )
        refusal.why, refusal.advice = reasons, advice
        raise refusal
    try:
        options.check_values(operation)
    except InvalidRequestError as wrong:
        raise InvalidRequestError(
            f"{handle.uri} cannot be {_DONE[operation]}: {wrong}. Set the option to a valid "
            "value, or remove it; if that is refused, use the engine that set it. Nothing was "
            "changed"
        ) from None


def _require_observed(handle: TableHandle) -> None:
    """Raise UnsupportedError if this handle cannot publish its commit as Iceberg metadata."""
    if handle.observer is not None:
        handle.observer.before_commit(handle)
    else:
        raise UnsupportedError(
            f"{handle.uri} publishes Iceberg metadata with each commit, but this handle cannot do "
            "that. Nothing was changed. To change the table, open it with open_table or a catalog"
        )


def _chain_branches(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the two branches that a chain table merges; ``()`` for any other table.

    A chain table sets ``chain-table.enabled`` and both options that name a branch. If one of these
    options is missing, Java reads the table as a normal table.
    """
    names = tuple(options[key] for key in _CHAIN if options.get(key))
    is_chain = options.get(CHAIN_TABLE, "").strip().lower() == "true"
    return names if is_chain and len(names) == len(_CHAIN) else ()


def read_through(options: Mapping[str, str], branch: str) -> str | None:
    """Return the key of the option by which reads of ``branch`` include rows of other branches.

    Return None if there is no such option.
    """
    chained = _chain_branches(options)
    if chained:
        apart = {name.lower() for name in chained}
        return None if branch.lower() in apart else CHAIN_TABLE
    return next((key for key in _SINGLE if options.get(key, "").strip()), None)


def require_no_chain(handle: TableHandle) -> None:
    """Raise UnsupportedError for a chain table, except on the two branches that it merges."""
    options = handle.options.to_dict()
    if read_through(options, handle.layout.branch) == CHAIN_TABLE:
        names = [f"{handle.name}$branch_{name}" for name in _chain_branches(options)]
        raise UnsupportedError(
            f"{handle.uri} sets {CHAIN_TABLE!r}: its rows are merged from branches, which this "
            f"version does not do. Use Spark or Flink, or read one branch: {' or '.join(names)}"
        )


def _require_no_link(handle: TableHandle) -> None:
    if _chain_branches(handle.options.to_dict()):
        raise UnsupportedError(
            f"branch {handle.layout.branch!r} of {handle.uri} is one of the two branches that a "
            f"chain table ({CHAIN_TABLE!r}) merges. The partitions and delete markers of this "
            "branch decide which rows of the other branch belong to the chain table. Change this "
            "branch with Spark or Flink. Nothing was written"
        )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def require_writable(handle: TableHandle) -> None:
    """Raise UnsupportedError if the table's keys, buckets or options prevent this version from
    writing.

    Raise InvalidRequestError if an option that writers use has an invalid value.
    """
    schema, bucket = handle.schema, handle.options.bucket
    if not schema.primary_keys:
        _require_bucket_key(handle)
    elif crosses_partitions(handle) and bucket != UNAWARE_BUCKET:
        raise UnsupportedError(
            f"the primary key of {handle.uri} lacks a partition column, so a row may have to move "
            f"between partitions: that needs 'bucket' = '-1', and the table has '{bucket}'. Create "
            "a new table with 'bucket' = '-1', or with the partition columns in its primary key"
        )
    elif crosses_partitions(handle) and handle.options.keeps_moved_rows:
        option, given = TableOptions.ignore_delete, handle.options.to_dict()
        key = next(key for key in (option.key, *option.older_keys) if key in given)
        raise UnsupportedError(
            f"{handle.uri} sets {key!r}, so a row that moves to another partition is not deleted "
            "in the old one: its key would appear twice. Nothing was written. If the table has no "
            "snapshot yet, remove the option; otherwise copy its rows to a new table without it"
        )
    require_allowed(handle, Operation.WRITE)


def _require_bucket_key(handle: TableHandle) -> None:
    options = handle.options
    if options.bucket != UNAWARE_BUCKET and not options.bucket_key:
        raise UnsupportedError(
            f"{handle.uri} has {counted(int(options.bucket), 'bucket')} but sets no 'bucket-key': "
            "this version does not write such tables; copy the rows into a table with a bucket key"
        )
