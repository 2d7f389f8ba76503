# SPDX-License-Identifier: Apache-2.0
"""The arguments of a rollback."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.moment import Moment
from lakeformat.tables.position import AnyPosition

__all__ = ["RollbackRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackRequest:
    """The arguments of a rollback; see ``Table.rollback``."""

    snapshot: AnyPosition | None = None
    tag: str | None = None
    as_of: Moment | None = None
    watermark: int | None = None
    as_latest: bool = True
    force: bool = False
    commit: CommitId | None = None
    dry_run: bool = False
