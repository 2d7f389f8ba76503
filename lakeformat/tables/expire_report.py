# SPDX-License-Identifier: Apache-2.0
"""The base class of the reports of an expiry of snapshots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from lakeformat.tables.report import Report

__all__ = ["AnyExpireReport"]


class AnyExpireReport(Report, ABC):
    """The report of an expiry of snapshots in a table of any format."""

    __slots__ = ()

    @property
    @abstractmethod
    def has_work(self) -> bool:
        """True if the expiry removed something or, in a dry run, would remove something."""

    @property
    @abstractmethod
    def lines(self) -> tuple[str, ...]:
        """One line for each change that the expiry made or, in a dry run, would make."""

    def advice(self, table: str) -> Sequence[str]:
        """Return a sentence for each obstacle to further expiry, with the command that removes it.

        ``table`` is the name of the table in the commands.
        """
        return ()
