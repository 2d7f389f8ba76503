# SPDX-License-Identifier: Apache-2.0
"""The handle of an open table: its pointer, its branch and the environment."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.environment import SYSTEM, Environment
from lakeformat.iceberg.commit.pointer import MetadataPointer
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.tables.position import MAIN_BRANCH

__all__ = ["TableHandle"]


@dataclass(frozen=True, slots=True)
class TableHandle:
    """An open table, which is passed to each operation."""

    pointer: MetadataPointer
    branch: str = MAIN_BRANCH
    environment: Environment = SYSTEM

    @property
    def uri(self) -> str:
        """The URI of the table, for messages."""
        return self.pointer.uri

    def load(self) -> LoadedMetadata:
        """Return the current metadata."""
        return self.pointer.load()
