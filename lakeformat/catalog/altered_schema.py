# SPDX-License-Identifier: Apache-2.0
"""Changes the schema of a Paimon table.

Two kinds of changes are refused: changes that cannot be published as Iceberg metadata, and changes
after which some rows would never be written to the changelog.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.environment import Environment
from lakeformat.paimon.compact.changelogs.waiting import check_change_of_producer
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.schema_file import alter_schema
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.schema_changes.changes import SchemaChange
from lakeformat.publish import IcebergPublication
from lakeformat.storage import Storage

__all__ = ["alter_schema_of"]


def alter_schema_of(
    storage: Storage,
    layout: TableLayout,
    changes: Sequence[SchemaChange],
    environment: Environment,
    publication: IcebergPublication,
) -> TableSchema:
    """Apply all ``changes`` to the newest schema, and return the resulting schema.

    The result is written to a new schema file, unless the changes have no effect. If the table is
    published as an Iceberg table, changes that cannot be published raise ``UnsupportedError``; then
    no file is written. A change of ``changelog-producer`` raises ``InvalidRequestError`` if some
    rows are not in the changelog yet, and the new producer would never write them to it.
    """

    def checked(before: TableSchema, after: TableSchema) -> TableSchema:
        written = publication.publishable(after, before)
        handle = TableHandle(storage, layout, written, environment)
        publication.check_change(before, handle)
        check_change_of_producer(TableHandle(storage, layout, before, environment), handle)
        return written

    return alter_schema(storage, layout, changes, environment, checked)
