# SPDX-License-Identifier: Apache-2.0
"""``$branches``: the branches of the table, which are separate histories."""

from __future__ import annotations

from lakeformat.paimon.metadata.branch_directory import Branch, branches
from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.source import Source

__all__ = ["BRANCHES"]


def _branches(source: Source) -> list[Branch]:
    handle = source.handle
    return branches(handle.storage, handle.layout, handle.options.file_operation_threads)


BRANCHES = declare(
    "branches",
    _branches,
    [
        column("branch_name", "STRING NOT NULL", "name"),
        column("create_time", "TIMESTAMP(3) NOT NULL", "create_millis"),
    ],
)
