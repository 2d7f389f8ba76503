# SPDX-License-Identifier: Apache-2.0
"""Selects the changes that an optimizing may merge, so that transactions keep their order.

A change with a low transaction id may have a high sequence number: a batch took its transaction
first and committed late. If such a change were merged after newer changes, its rows would replace
newer rows of the same keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

__all__ = ["ChangeGroup", "ordered_sequence"]


@dataclass(frozen=True, slots=True, order=True)
class ChangeGroup:
    """The files of one commit and one transaction in the change store."""

    sequence: int
    transaction: int
    files: int


def ordered_sequence(
    groups: Iterable[ChangeGroup], most_files: int, before: int | None = None
) -> int | None:
    """Return the highest sequence number up to which changes may be merged; None if none may be.

    At most ``most_files`` files may have this number or a lower one, and all of them must have
    lower transactions than all later files. With ``before`` the result is lower than ``before``;
    the files from ``before`` on are among the later files, too.
    """
    ordered = sorted(groups)
    lowest = [*accumulate((each.transaction for each in reversed(ordered)), min)][::-1]
    found, files, highest = None, 0, -1
    for place, each in enumerate(ordered, 1):
        files += each.files
        highest = max(highest, each.transaction)
        if files > most_files or (before is not None and each.sequence >= before):
            break
        is_end = place == len(ordered)
        if is_end or (ordered[place].sequence > each.sequence and highest < lowest[place]):
            found = each.sequence
    return found
