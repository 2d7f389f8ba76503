# SPDX-License-Identifier: Apache-2.0
"""Explains a scan of a Mixed table: the files that it reads of each store."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lakeformat.mixed.file_names import FileKind
from lakeformat.mixed.read.node_splits import MixedPlan
from lakeformat.mixed.read.state import MixedState
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["MixedScanPlan", "explain_nodes"]


@dataclass(frozen=True, slots=True)
class MixedScanPlan:
    """Numbers about one planned scan; ``str`` returns them as sentences."""

    position: str
    """The position of the state that is read."""
    base_files: int
    """The number of files of the base store to read."""
    insert_files: int
    """The number of files with inserted rows to read in the change store."""
    delete_files: int
    """The number of files with deleted keys to read in the change store."""
    merged_changes: int
    """The number of files of the change store that are skipped, because the base store already has
    their changes.
    """
    left_out_by_partition: int
    left_out_by_statistics: int
    left_out_by_node: int
    """The number of data files that are skipped, because no key of the condition is in their node.
    """
    bytes_to_read: int
    """The total size of the files to read, without ``version_bytes``."""
    nodes: int
    """The number of nodes to read, in all partitions; each is a split."""
    merged_nodes: int
    """The number of nodes whose rows must be compared with deletes."""
    largest_node_deletes_bytes: int
    """The largest total size that the delete files of one node have."""
    version_files: int
    """The number of base files whose keys and versions are read once more, because they may have
    larger versions than inserts of their node; 0 in a table without a version field."""
    version_bytes: int
    """The total size of the files in ``version_files``, with all columns."""

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as a dict."""
        return asdict(self)

    def __str__(self) -> str:
        plain = self.nodes - self.merged_nodes
        compared = (
            f"versions: {counted(self.version_files, 'base file')} of "
            f"{size(self.version_bytes)} read once more, to compare their versions with those of "
            "inserts"
        )
        return "\n".join(
            (
                f"position {self.position}: {counted(self.base_files, 'base file')}, "
                f"{counted(self.insert_files, 'insert file')} and "
                f"{counted(self.delete_files, 'delete file')} to read, {size(self.bytes_to_read)}",
                f"files skipped: {self.left_out_by_partition} by partition, "
                f"{self.left_out_by_statistics} by statistics, {self.left_out_by_node} by node "
                f"and {self.merged_changes} of the change store because their changes are merged",
                f"nodes: {self.nodes} ({plain} read as stored, {self.merged_nodes} merged by key, "
                f"the deletes of one node take at most {size(self.largest_node_deletes_bytes)})",
                *([compared] if self.version_files else []),
            )
        )


def explain_nodes(state: MixedState, plan: MixedPlan) -> MixedScanPlan:
    """Return the numbers of a plan."""
    files = {each.path: each for split in plan.splits for each in split.files}.values()
    deletes = {each.path: each for split in plan.splits for each in split.deletes}.values()
    merged = [split for split in plan.splits if split.deletes]
    compared = {each.path: each for split in merged for each in split.base_versions}.values()
    kinds = [each.kind for each in files]
    of_stores = (plan.base, plan.change)
    return MixedScanPlan(
        position=str(state.position),
        base_files=kinds.count(FileKind.BASE),
        insert_files=kinds.count(FileKind.INSERT),
        delete_files=len(deletes),
        merged_changes=plan.merged_changes,
        left_out_by_partition=sum(
            (each.files or each.files_in_manifests) - each.left_by_partition for each in of_stores
        ),
        left_out_by_statistics=sum(
            each.left_by_partition - each.files_to_read for each in of_stores
        ),
        left_out_by_node=plan.left_out_by_node,
        bytes_to_read=sum(each.split.file.size_bytes for each in (*files, *deletes)),
        nodes=len(plan.splits),
        merged_nodes=len(merged),
        largest_node_deletes_bytes=max(
            (sum(each.split.file.size_bytes for each in split.deletes) for split in plan.splits),
            default=0,
        ),
        version_files=len(compared),
        version_bytes=sum(each.split.file.size_bytes for each in compared),
    )
