# SPDX-License-Identifier: Apache-2.0
"""Publishes Iceberg metadata of Paimon tables, so that Iceberg readers read the same data files.

``IcebergPublication`` publishes after each commit to a table whose options ask for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from lakeformat.errors import LakeError, UnsupportedError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH
from lakeformat.paimon.options.commit import ASYNC, REWRITE
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.sentence import sentence

if TYPE_CHECKING:
    from lakeformat.publish.targets.entry import Targets
    from lakeformat.publish.targets.withdraw import NoWithdrawal, Withdrawal
    from lakeformat.tables.commit_observer import ObservedFiles, ObserverLag

__all__ = ["IcebergPublication"]

_log = logging.getLogger(__name__)


class IcebergPublication:
    """Publishes Iceberg metadata after each commit to a Paimon table.

    Tables without the option ``metadata.iceberg.storage`` are not published. Each branch is a
    separate Iceberg table.
    """

    def __init__(self, open_targets: Callable[[], Targets] | None = None) -> None:
        """Publish also in the Iceberg catalogs that ``open_targets`` opens.

        The options of each table choose these catalogs. ``open_targets=None`` is for tables that
        are opened without a catalog.
        """
        self._open_targets = open_targets

    @property
    def targets(self) -> Targets | None:
        """The Iceberg catalogs; None if tables are opened without a catalog."""
        return None if self._open_targets is None else self._open_targets()

    def __reduce__(self) -> tuple[type[IcebergPublication], tuple[()]]:
        """Pickle without the catalogs and their logins: Spark tasks write files, but do not
        commit.
        """
        return IcebergPublication, ()

    def publishable(self, schema: TableSchema, before: TableSchema | None = None) -> TableSchema:
        """Return the schema to write for a published table.

        ``before`` is the schema before a change, None for a new table. If
        ``iceberg.on-unpublishable`` is ``rewrite``, new timestamp columns of at most 3 digits get 6
        digits, because some Iceberg readers refuse files with milliseconds. In all other cases,
        return ``schema`` itself.
        """
        options = schema.table_options
        if not options.publishes_iceberg or options.iceberg_on_unpublishable != REWRITE:
            return schema
        from lakeformat.publish.wider_times import with_wider_times

        return with_wider_times(schema, before)

    def check_schema(self, schema: TableSchema) -> None:
        """Raise ``UnsupportedError`` if the table is published and Iceberg cannot describe its
        schema.
        """
        if schema.table_options.publishes_iceberg:
            from lakeformat.publish.requirements import require_publishable

            require_publishable(schema)

    def check_change(self, before: TableSchema, handle: TableHandle) -> None:
        """Raise ``UnsupportedError`` for a change of columns or options that cannot be published.

        ``handle`` has the new schema. If the change switches publication on, log a warning for
        columns that once got a narrower type.
        """
        if not handle.options.publishes_iceberg:
            return
        from lakeformat.publish.format_version import refuse_lower_option
        from lakeformat.publish.requirements import (
            require_publishable_change,
            require_publishable_history,
            warn_of_narrowed_types,
        )

        require_publishable_change(before, handle.schema)
        if not before.table_options.publishes_iceberg:
            require_publishable_history(handle, {})
        if handle.layout.branch == MAIN_BRANCH:
            refuse_lower_option(before, handle)
        if not before.table_options.publishes_iceberg:
            warn_of_narrowed_types(handle)

    def before_commit(self, handle: TableHandle) -> None:
        """Raise ``UnsupportedError``, before a commit, if the table cannot be published.

        The directory and the catalogs that the options name are checked before each commit. Columns
        and other options are checked only before the first commit. If another engine adds an
        unpublishable column later, commits continue, and the publication fails with a warning.
        """
        from lakeformat.publish.place import require_place
        from lakeformat.publish.requirements import require_publishable_at_first

        try:
            require_publishable_at_first(handle)
            require_place(handle)
            if (targets := self.targets) is not None:
                targets.require(handle)
        except UnsupportedError as reason:
            raise UnsupportedError(
                f"{handle.uri} cannot be changed while 'metadata.iceberg.storage' is "
                f"{handle.options.iceberg_storage!r}: {reason}. Or set 'metadata.iceberg.storage' "
                "to 'disabled'. Nothing was changed"
            ) from None

    def after_commit(self, handle: TableHandle) -> None:
        """Publish the newest snapshot as Iceberg metadata; a failure is only logged as a warning.

        Nothing is published if the option ``iceberg.publish-mode`` is ``async``.
        """
        if handle.options.iceberg_publish_mode == ASYNC:
            return
        self._publish(handle, follows_upkeep=False)

    def lag(self, handle: TableHandle) -> ObserverLag | None:
        """Return how many snapshots the Iceberg metadata is behind the table or branch, with the
        reason.
        """
        from lakeformat.publish.lag import lag_of

        return lag_of(handle, self.targets)

    def before_removal(self, handle: TableHandle) -> None:
        """Publish the newest snapshot before files are deleted.

        If the publication fails, raise its error, so that nothing is deleted: Iceberg readers could
        still look for the files.
        """
        from lakeformat.publish.publish import publish_head

        try:
            publish_head(handle, self.targets, follows_upkeep=True)
        except UnsupportedError as reason:
            raise UnsupportedError(
                f"no file of {handle.uri} can be deleted while its Iceberg metadata cannot be "
                f"published: {reason}. If no reader needs the metadata any more, set the option "
                "'metadata.iceberg.storage' to 'disabled'. Nothing was deleted"
            ) from None

    def after_upkeep(self, handle: TableHandle) -> None:
        """Publish a change of tags or an expiry of snapshots; a failure is only logged."""
        self._publish(handle, follows_upkeep=True)

    def withdrawal(
        self, handle: TableHandle, moved: TableHandle | None = None
    ) -> Withdrawal | NoWithdrawal | None:
        """Return the catalog entries and the warehouse directory to remove when the table is
        dropped or renamed.

        ``moved`` is the table under its new name if its directory is already renamed.

        Return None if there is nothing to remove, for example for a branch or for a table that is
        not published. If the options, the catalogs or the metadata cannot be used, return
        ``NoWithdrawal`` with the reason.
        """
        if handle.layout.branch != MAIN_BRANCH or not handle.options.publishes_iceberg:
            return None
        from lakeformat.publish.targets.withdraw import NoWithdrawal, withdrawal_of

        try:
            return withdrawal_of(handle, self.targets, moved)
        except LakeError as reason:
            return NoWithdrawal(f"the Iceberg metadata of {handle.uri} is not removed: {reason}")

    def files(self, handle: TableHandle) -> ObservedFiles | None:
        """Return the directory of the Iceberg metadata, and the names of the files in it that
        readers need.
        """
        from lakeformat.publish.needed_files import needed_files

        return needed_files(handle)

    def _publish(self, handle: TableHandle, *, follows_upkeep: bool) -> None:
        from lakeformat.publish.publish import publish_head

        try:
            publish_head(handle, self.targets, follows_upkeep=follows_upkeep)
        except Exception as reason:  # noqa: BLE001 - the commit is durable and must be reported
            _log.warning(
                "%s is changed, but its Iceberg metadata is not published: %s Readers of "
                "Iceberg see the earlier state until a publication succeeds. To publish now: run "
                "`lake publish %s`",
                *(handle.uri, sentence(reason), handle.argument),
                exc_info=_log.isEnabledFor(logging.DEBUG),
            )
