# SPDX-License-Identifier: Apache-2.0
"""Names of the files of a Mixed table: they contain the node, the kind and the transaction.

The form of a name is
``<node id>-<kind>-<transaction>-<partition>-<task>-<operation>-<count>.<format>``.
An example is ``5-I-0-00000-0-7502998595631226311-00001.parquet``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError
from lakeformat.mixed.tree_node import TreeNode

__all__ = ["FileKind", "FileName", "name_columns", "parse_file_name"]


class FileKind(StrEnum):
    """The kinds of files, as in file names."""

    BASE = "B"
    INSERT = "I"
    CHANGE_DELETE = "ED"
    """A data file of the change store in which each row is a delete."""
    POSITION_DELETE = "PD"
    EQUALITY_DELETE = "IED"
    """An equality delete file of Iceberg."""
    LOG = "L"


_KINDS = "|".join(sorted(FileKind))
_NAME = (
    rf"(?:^|/)(?P<node>[0-9]{{1,18}})-(?P<kind>{_KINDS})-(?P<transaction>[0-9]{{1,18}})"
    r"-(?P<partition>[0-9]{1,18})-(?P<task>[0-9]{1,18})-(?P<operation>[^/]+)"
    r"-(?P<count>[0-9]{1,18})\.(?P<format>[A-Za-z.]+)$"
)
_NUMBERS = ("node", "transaction", "partition", "task", "count")
_DIGITS = 5


@dataclass(frozen=True, slots=True)
class FileName:
    """The parts of a file name."""

    node: TreeNode
    kind: FileKind
    transaction: int
    """The id of the transaction. In the change store, 0 stands for the file's sequence number."""
    partition: int
    """The number of the writer's input partition, not of a partition of the table."""
    task: int
    operation: str
    """A text that differs for each run of a writer."""
    count: int
    """The number of the file among those of one writer, from 1 on."""
    format: str = "parquet"

    def __str__(self) -> str:
        return (
            f"{self.node.id}-{self.kind}-{self.transaction}-{self.partition:0{_DIGITS}}-{self.task}"
            f"-{self.operation}-{self.count:0{_DIGITS}}.{self.format}"
        )


def name_columns(paths: pa.Array) -> pa.StructArray:
    """Return the parts of the names of many files as columns; null for a name of another form.

    The columns are ``node`` (its id), ``kind``, ``transaction``, ``partition``, ``task``,
    ``operation``, ``count`` and ``format``.
    """
    parts = pc.extract_regex(paths.cast(pa.string()), _NAME)
    columns = dict(zip(parts.type.names, parts.flatten(), strict=True))
    for name in _NUMBERS:
        columns[name] = columns[name].cast(pa.int64())
    found = pa.StructArray.from_arrays([*columns.values()], [*columns], mask=pc.is_null(parts))
    return pc.if_else(pc.greater(found.field("node"), 0), found, None)


def parse_file_name(path: str) -> FileName:
    """Return the parts of a file's name; raise ``CorruptTableError`` if it has another form."""
    [parts] = name_columns(pa.array([path], pa.string())).to_pylist()
    if parts is None:
        raise CorruptTableError(
            f"{path} does not have the name of a file of a Mixed table, such as "
            "5-I-0-00000-0-7502998595631226311-00001.parquet, so its node and its transaction are "
            "unknown: another program wrote it. Write rows to the Mixed table, never into one of "
            "its stores"
        )
    node, kind = TreeNode.of_id(parts.pop("node")), FileKind(parts.pop("kind"))
    return FileName(node=node, kind=kind, **parts)
