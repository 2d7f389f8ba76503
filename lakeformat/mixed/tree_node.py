# SPDX-License-Identifier: Apache-2.0
"""Tree nodes: the hash buckets of a Mixed table. Their number can change without rewriting files.

The mask of a node selects the n lowest bits of a hash. The node holds the keys for which these bits
are equal to its index. Its two children divide these keys by the next bit. So the files of a node
can share keys only with files of the node itself, of its ancestors, and of its descendants.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError

__all__ = ["ROOT", "TreeNode", "bucket_mask"]

_MOST = 2**31


@dataclass(frozen=True, slots=True, order=True)
class TreeNode:
    """A node of the tree: ``mask`` is a power of two minus 1, and ``index`` at most ``mask``."""

    mask: int
    index: int

    def __post_init__(self) -> None:
        if self.mask < 0 or self.mask & (self.mask + 1) or not 0 <= self.index <= self.mask:
            raise InvalidRequestError(
                f"({self.mask}, {self.index}) is not a tree node: the mask must be a power of two "
                "minus 1, and the index between 0 and the mask"
            )

    @classmethod
    def of_id(cls, node_id: int) -> TreeNode:
        """Return the node with an id; raise ``InvalidRequestError`` for an id below 1."""
        if node_id < 1:
            raise InvalidRequestError(f"{node_id} is not the id of a tree node: ids begin with 1")
        mask = (1 << (node_id.bit_length() - 1)) - 1
        return cls(mask, node_id - mask - 1)

    @property
    def id(self) -> int:
        """The id of the node, as in the names of its files; the root has 1."""
        return self.mask + 1 + self.index

    @property
    def parent(self) -> TreeNode | None:
        """The node of which this node is a half; None for the root."""
        above = self.mask >> 1
        return TreeNode(above, self.index & above) if self.mask else None

    @property
    def left(self) -> TreeNode:
        """The half of the node in which the next bit of the hash is 0."""
        return TreeNode(2 * self.mask + 1, self.index)

    @property
    def right(self) -> TreeNode:
        """The half of the node in which the next bit of the hash is 1."""
        return TreeNode(2 * self.mask + 1, self.index + self.mask + 1)

    def is_inside(self, other: TreeNode) -> bool:
        """Return True if every key of this node is also a key of the other."""
        return self.mask >= other.mask and self.index & other.mask == other.index

    def may_share_keys(self, other: TreeNode) -> bool:
        """Return True if both nodes are equal, or one is inside of the other."""
        return self.is_inside(other) or other.is_inside(self)

    def __str__(self) -> str:
        return f"({self.mask},{self.index})"


ROOT = TreeNode(0, 0)
"""The node of all keys."""


def bucket_mask(buckets: int, option: str) -> int:
    """Return the mask of a number of buckets.

    Raise ``InvalidRequestError``, which names the property ``option``, unless the number is a power
    of two up to 2**31.
    """
    if buckets < 1 or buckets & (buckets - 1):
        raise InvalidRequestError(
            f"{option!r} is {buckets}, which is not a power of two: set it to a power of two, such "
            "as 4"
        )
    if buckets > _MOST:
        raise InvalidRequestError(
            f"{option!r} is {buckets}, but hashes of keys have 31 bits: set it to a power of two "
            f"up to {_MOST}, such as 4"
        )
    return buckets - 1
