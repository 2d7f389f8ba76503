# SPDX-License-Identifier: Apache-2.0
"""``table.staged``: results that one job writes and another publishes later."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.commit_report import CommitReport
from lakeformat.paimon.commit.earlier_result import find_commit
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage, check_messages
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.metadata.staged_result import (
    StagedResult,
    claim,
    delete_staged,
    no_such_result,
    read_staged,
    read_staged_if_present,
    release,
    staged_name,
    staged_names,
    write_staged,
)
from lakeformat.paimon.staged.discard import DiscardReport, discard, where_published
from lakeformat.paimon.staged.order import require_order
from lakeformat.storage import Storage, resolve
from lakeformat.tables.commit_id import CommitId, require_commit_id
from lakeformat.tables.file_name_part import check_file_name_part, suffixed
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.tables.past_time import PastTime, past_millis
from lakeformat.types.type_rules import require_list, require_text

if TYPE_CHECKING:
    from lakeformat.paimon.read.scan import Scan
    from lakeformat.rows.conditions.filter import Where

__all__ = ["TableStaged"]

_USER = "staged-"


class Commit(Protocol):
    """``Table.commit``."""

    def __call__(self, messages: Iterable[CommitMessage], *, commit: CommitId) -> CommitReport:
        """Publish messages."""


@dataclass(frozen=True, slots=True)
class TableStaged:
    """The staged results of one table, or of one of its branches."""

    _handle: TableHandle
    _commit: Commit

    def list(self) -> list[StagedResult]:
        """Return every result that is not published yet, by name."""
        storage, layout = self._handle.storage, self._handle.layout
        found = (
            read_staged_if_present(storage, layout, name) for name in staged_names(storage, layout)
        )
        return [result for result in found if result is not None]

    def address(self, name: str) -> str:
        """Return the address of the result with this name, for ``publish`` and ``discard``."""
        check_file_name_part("staged result", name)
        return self._handle.storage.uri(self._handle.layout.staged(name))

    def named(self, addresses: Sequence[str]) -> Sequence[StagedResult]:
        """Return the results with these addresses; raise if one of them does not exist."""
        require_list("addresses", addresses, "[result.address]")
        storage, layout = self._handle.storage, self._handle.layout
        names = [*dict.fromkeys(map(self._name, addresses))]
        return [read_staged(storage, layout, name) for name in names]

    def find(self, commit: CommitId) -> StagedResult | None:
        """Return the staged result of a commit identity; None if it has none."""
        require_commit_id(commit)
        name = staged_name(commit.user, commit.identifier)
        return read_staged_if_present(self._handle.storage, self._handle.layout, name)

    def add(
        self, messages: Iterable[CommitMessage], *, commit: CommitId | None = None
    ) -> StagedResult:
        """Record prepared files for a later publication; remove_orphans keeps them.

        If the same ``commit`` has staged a result before, that result is returned: then remove the
        files of these messages with ``Table.abort``.
        """
        storage, layout = self._handle.storage, self._handle.layout
        environment = self._handle.environment
        if commit is None:
            name = staged_name(environment.new_id(), 0)
        else:
            require_commit_id(commit)
            name = staged_name(commit.user, commit.identifier)
        write_staged(storage, layout, name, check_messages(messages), environment)
        return read_staged(storage, layout, name)

    def scan(
        self,
        addresses: Sequence[str],
        columns: Sequence[str] | None = None,
        *,
        where: Where | None = None,
        with_published: bool = False,
    ) -> Scan:
        """Scan the rows of staged results, which readers of the table do not see yet.

        Rows of one key are merged, and deletes remove the rows before them.
        ``with_published=True`` merges them with the rows of the newest snapshot as well: the result
        is the table after a commit and a compaction.
        """
        from lakeformat.paimon.staged.scan import scan_staged

        results, after = self.named(addresses), None
        if with_published:
            after = latest_snapshot(self._handle.storage, self._handle.layout)
        return scan_staged(self._handle, results, columns, where, after=after)

    def publish(self, addresses: Sequence[str], *, commit: CommitId | None = None) -> CommitReport:
        """Publish staged results in one snapshot, once, and delete their notes.

        Without ``commit`` the identity is made of their names: a call with the same results
        publishes nothing again.
        """
        require_list("addresses", addresses, "[result.address]")
        names = sorted({self._name(address) for address in addresses})
        commit = commit or _identity(names)
        handle = self._handle
        claimed = [
            name for name in names if claim(handle.storage, handle.layout, name, commit.user)
        ]

        def give_back() -> None:
            for name in claimed:
                release(handle.storage, handle.layout, name)

        # While the outcome is unknown, the claims are kept, so ``discard`` keeps the results.
        with kept_if_published(give_back):
            report = self._publish(names, commit)
        for name in names:
            delete_staged(handle.storage, handle.layout, name)
        return report

    def discard(
        self,
        addresses: Sequence[str] | None = None,
        *,
        older_than: PastTime | None = None,
        dry_run: bool = True,
    ) -> Sequence[DiscardReport]:
        """Discard results that will not be published, with their files; a dry run by default.

        Choose them by name, or by ``older_than``: a time, or an age such as ``"7 d"``. A result
        whose publication has begun is kept: publish it again.
        """
        if (addresses is None) is (older_than is None):
            raise InvalidRequestError(
                "pass either 'addresses' or 'older_than', to choose the staged results to discard"
            )
        if addresses is not None:
            named = self.named(addresses)
        else:
            assert older_than is not None
            millis = past_millis("older_than", older_than, self._handle.environment.now_millis())
            named = [result for result in self.list() if result.created_millis < millis]
        return [discard(self._handle, result, dry_run=dry_run) for result in named]

    def _publish(self, names: Sequence[str], commit: CommitId) -> CommitReport:
        storage, layout = self._handle.storage, self._handle.layout
        read = {name: read_staged_if_present(storage, layout, name) for name in names}
        results = [result for result in read.values() if result is not None]
        done = find_commit(self._handle, commit)
        if done is not None and len(results) < len(names):
            # An earlier attempt was interrupted while it deleted their notes.
            strange = [each for each in results if where_published(self._handle, each) is None]
            if strange:
                raise self._something_else(commit, done)
            return done
        if len(results) < len(names):
            missing = next(name for name, result in read.items() if result is None)
            raise no_such_result(storage, layout, missing)
        if done is None:
            require_order(self._handle, results)
        report = self._commit([each for one in results for each in one.messages], commit=commit)
        if report.unpublished_files:
            raise self._something_else(commit, report)
        return report

    def _something_else(self, commit: CommitId, done: CommitReport) -> InvalidRequestError:
        return InvalidRequestError(
            f"{commit} has published other files before, as snapshot {done.snapshot_id} of "
            f"{self._handle.uri}, so nothing was published now; pass another commit identity for "
            "these staged results"
        )

    def _name(self, address: str) -> str:
        """Return the name in an address; raise if the address is of another table."""
        storage, layout = self._handle.storage, self._handle.layout
        require_text("the address of a staged result", address)
        name = suffixed(address.rpartition("/")[2], "staged-")
        is_ours = name is not None and address == self.address(name)
        if name is None or not (is_ours or _is_at(address, storage, layout.staged(name))):
            raise InvalidRequestError(
                f"{address!r} is not a staged result of {self._handle.uri}: pass the address that "
                "its job returned, and open the table that it was staged for"
            )
        return name


def _is_at(address: str, storage: Storage, path: str) -> bool:
    """Return True if ``address`` names the file ``path``, perhaps in another spelling."""
    place, found = resolve(address, storage)
    return place.uri(found) == storage.uri(path)


def _identity(names: Sequence[str]) -> CommitId:
    digest = hashlib.blake2b("\n".join(names).encode(), digest_size=16).hexdigest()
    return CommitId(f"{_USER}{digest}", 0)
