# SPDX-License-Identifier: Apache-2.0
"""Commit messages of a Mixed table: unpublished files of one writer, which any process can commit.

All rows of a node must have one writer, so that the last of several changes of a key counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.write.commit_prepared import no_entries
from lakeformat.iceberg.write.message import IcebergCommitMessage
from lakeformat.mixed.file_names import FileKind, parse_file_name
from lakeformat.mixed.stores.partition_path import partition_values
from lakeformat.mixed.tree_node import TreeNode
from lakeformat.tables.json_file import Member
from lakeformat.tables.messages import require_messages

__all__ = [
    "MixedCommitMessage",
    "check_messages",
    "entries_of_new_files",
    "require_names",
    "require_one_writer",
]

_ADVICE = (
    "pass a list of the messages that writers of a Mixed table prepared, as in "
    "commit(writer.prepare()); convert bytes with table.read_message"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedCommitMessage(IcebergCommitMessage):
    """New files of one store that are not published yet."""

    given_rows: int
    """The number of rows that the writer was given."""

    _members: ClassVar[Sequence[Member]] = (
        *IcebergCommitMessage._members,
        Member("given-rows", "given_rows", int, required=True),
    )

    @property
    def rows(self) -> int:
        """The number of rows that the writer was given."""
        return self.given_rows

    @property
    def upsert_by(self) -> None:
        """Always None, because the writer has already written the deletes of replaced rows."""


def check_messages(messages: object) -> list[MixedCommitMessage]:
    """Return the messages as a list; raise ``InvalidRequestError`` for messages of another
    class.
    """
    return require_messages(messages, MixedCommitMessage, _ADVICE)


def require_names(
    messages: Sequence[MixedCommitMessage],
    table: str,
    kinds: Sequence[FileKind],
    transaction: int,
) -> None:
    """Raise ``InvalidRequestError`` if a file was not written for this commit.

    The name of each file must have one of ``kinds`` and the given ``transaction``. ``table`` is the
    name of the table for the error.
    """
    for path in (path for each in messages for path in each.paths):
        name = parse_file_name(path)
        if name.kind not in kinds or name.transaction != transaction:
            raise InvalidRequestError(
                f"the file {path} was not written for this commit to {table}: its name has the "
                f"kind {name.kind} and the transaction {name.transaction}, but this commit takes "
                f"the kind {' or '.join(kinds)} and the transaction {transaction}. Nothing was "
                "published: pass the messages of writers of this commit, unchanged"
            )


def require_one_writer(messages: Sequence[MixedCommitMessage], table: str) -> None:
    """Raise ``UnsupportedError`` if two messages have rows of the same node in the same
    partition.
    """
    writers: dict[tuple[str, TreeNode], int] = {}
    below: dict[tuple[str, TreeNode], set[int]] = {}
    for number, message in enumerate(messages):
        for partition, node in _places(message):
            above = [(partition, each) for each in _ancestors(node)]
            others = below.get((partition, node), set()) | {
                writers.get(each, number) for each in [(partition, node), *above]
            }
            if others != {number}:
                raise UnsupportedError(
                    f"several writers have rows of node {node} of {table}, but one writer must "
                    "have all rows of a node, so that the last row of a key counts. Nothing was "
                    "published: find the node of each key with table.writer_buckets(), and give "
                    "all rows of a node to one writer. In Spark, use spark_jobs.write_table, or "
                    "write the rows that spark_jobs.by_bucket(rows, table) returns: it gives each "
                    "node to one task"
                )
            writers[partition, node] = number
            for each in above:
                below.setdefault(each, set()).add(number)


def entries_of_new_files(
    store: LoadedMetadata, table: str, entries: Sequence[pa.Table]
) -> pa.Table:
    """Return the entries as one table.

    Raise ``InvalidRequestError`` if they have another partition spec than new files of the store.
    """
    found = entries or [no_entries(store)]
    spec_id = store.metadata.default_spec_id
    if len(found) > 1 or any(each["spec_id"][0].as_py() != spec_id for each in entries):
        raise InvalidRequestError(
            f"the partition spec of {table} was changed after these files were written, so their "
            "rows would not replace the stored rows of the same keys. Nothing was published: write "
            "the rows again"
        )
    return found[0]


def _places(message: MixedCommitMessage) -> Iterator[tuple[str, TreeNode]]:
    partitions = partition_values(message.entries) if len(message.entries) else []
    for partition, path in zip(partitions, message.paths, strict=True):
        yield partition, parse_file_name(path).node


def _ancestors(node: TreeNode) -> Iterator[TreeNode]:
    while (parent := node.parent) is not None:
        yield parent
        node = parent
