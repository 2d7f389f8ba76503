# SPDX-License-Identifier: Apache-2.0
"""``table.staged``: results that one job writes and another job publishes later."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from lakeformat.environment import Environment
from lakeformat.errors import InvalidRequestError
from lakeformat.storage import resolve
from lakeformat.tables.commit_id import CommitId, require_commit_id
from lakeformat.tables.file_name_part import check_file_name_part
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.tables.past_time import PastTime, past_millis
from lakeformat.tables.staged.discard_report import DiscardReport
from lakeformat.tables.staged.files import MessageT, StagedFiles, StagedResult, staged_name
from lakeformat.tables.write_report import WriteReport
from lakeformat.types.type_rules import require_list, require_text

if TYPE_CHECKING:
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.results import Results

__all__ = ["AnyTableStaged"]

_USER = "staged-"
ReportT = TypeVar("ReportT", bound=WriteReport)


class AnyTableStaged(ABC, Generic[MessageT, ReportT]):
    """The staged results of one table or branch."""

    def __init__(self, table: str, environment: Environment, files: StagedFiles[MessageT]) -> None:
        self._table = table
        self._environment = environment
        self._files = files

    def list(self) -> list[StagedResult[MessageT]]:
        """Return all staged results, in the order of their names."""
        found = (self._files.read_if_present(name) for name in self._files.names())
        return [result for result in found if result is not None]

    def address(self, name: str) -> str:
        """Return the URI of the result with this name, for ``publish`` and ``discard``."""
        check_file_name_part("staged result", name)
        return self._files.address(name)

    def named(self, addresses: Sequence[str]) -> Sequence[StagedResult[MessageT]]:
        """Return the results with these URIs, each once.

        Raise ``NotFoundError`` if a result does not exist, and ``InvalidRequestError`` for a URI
        that is not of a staged result of this table.
        """
        require_list("addresses", addresses, "[result.address]")
        return [self._files.read(name) for name in dict.fromkeys(map(self._name, addresses))]

    def find(self, commit: CommitId) -> StagedResult[MessageT] | None:
        """Return the staged result of a commit identity; None without such a result."""
        require_commit_id(commit)
        return self._files.read_if_present(staged_name(commit.user, commit.identifier))

    def add(
        self, messages: Iterable[MessageT], *, commit: CommitId | None = None
    ) -> StagedResult[MessageT]:
        """Record written files for a later publication; until then ``remove_orphans`` keeps them.

        If the same ``commit`` has already staged a result, that earlier result is returned. If that
        result has other messages than the given ones, the caller must delete the files of the given
        messages with ``Table.abort``.
        """
        if commit is None:
            name = staged_name(self._environment.new_id(), 0)
        else:
            require_commit_id(commit)
            name = staged_name(commit.user, commit.identifier)
        self._files.write(name, self._checked(messages), self._environment)
        return self._files.read(name)

    @abstractmethod
    def scan(
        self,
        addresses: Sequence[str],
        columns: Sequence[str] | None = None,
        *,
        where: Where | None = None,
        with_published: bool = False,
    ) -> Results:
        """Return the rows of staged results, which scans of the table do not return yet.

        ``with_published`` also returns the published rows.
        """

    def publish(self, addresses: Sequence[str], *, commit: CommitId | None = None) -> ReportT:
        """Publish staged results in one snapshot, exactly once, and delete their records.

        Without ``commit`` the commit identity is derived from the names of the results. A repeated
        call publishes nothing, and returns the report of the first call. If a result is missing and
        no snapshot of a first call is found, for example because it has expired, ``NotFoundError``
        is raised. A result whose discard has begun raises ``InvalidRequestError``.
        """
        require_list("addresses", addresses, "[result.address]")
        names = sorted({self._name(address) for address in addresses})
        commit = commit or _identity(names)
        claims = [self._files.claim(name, commit.user, self._environment) for name in names]

        def give_back() -> None:
            for claim in claims:
                self._files.release(claim)

        # If the outcome is unknown, the claims are kept, so that discard keeps the results, too.
        with kept_if_published(give_back):
            report = self._publish(names, commit)
        for name in names:
            self._files.delete(name)
        return report

    def discard(
        self,
        addresses: Sequence[str] | None = None,
        *,
        older_than: PastTime | None = None,
        dry_run: bool = True,
    ) -> Sequence[DiscardReport]:
        """Delete staged results and their files without publishing them; a dry run by default.

        Choose the results either by ``addresses`` or by ``older_than``, which is a time or an age
        such as ``"7 d"``. Both or neither raise ``InvalidRequestError``. If a snapshot of any
        branch has a file of a result, all files of the result are kept, and only its record is
        deleted. A result whose publication began in the last 24 hours is kept: publish it again.
        """
        if (addresses is None) is (older_than is None):
            raise InvalidRequestError(
                "pass either 'addresses' or 'older_than', to choose the staged results to discard"
            )
        if addresses is not None:
            named = self.named(addresses)
        else:
            assert older_than is not None
            millis = past_millis("older_than", older_than, self._environment.now_millis())
            named = [result for result in self.list() if result.created_millis < millis]
        for result in named:
            self._require_own(result.messages)
        elsewhere = self._find_elsewhere([each for one in named for each in one.messages])
        return [self._discard(result, elsewhere, dry_run=dry_run) for result in named]

    @abstractmethod
    def _checked(self, messages: Iterable[MessageT]) -> Sequence[MessageT]:
        """Return the messages; raise ``InvalidRequestError`` for a message of another format."""

    @abstractmethod
    def _require_own(self, messages: Sequence[MessageT]) -> None:
        """Raise ``InvalidRequestError`` if a message names a file that is outside of the
        directories in which this table's writers write.
        """

    @abstractmethod
    def _where_published(self, messages: Sequence[MessageT]) -> str | None:
        """Return the reason why the messages count as published; None if they are not published.

        They count as published if a snapshot has their files.
        """

    def _find_elsewhere(
        self, messages: Sequence[MessageT]
    ) -> Callable[[Sequence[MessageT]], str | None]:
        """Return a function that takes some of ``messages``, and returns the reason why a discard
        must keep their files.

        The reason is that another branch, a tag or a changelog needs a file. If there is no reason,
        the function returns None.
        """
        return lambda _: None

    @abstractmethod
    def _find_commit(self, commit: CommitId) -> ReportT | None:
        """Return the report of an earlier commit with this identity; None without such a commit."""

    def _require_order(self, results: Sequence[StagedResult[MessageT]]) -> None:
        """Raise ``InvalidRequestError`` if it is unknown which rows of a bucket are newer.

        For example, two results may have rows for the same bucket. Without an override, this method
        checks nothing.
        """

    @abstractmethod
    def _commit(self, messages: Sequence[MessageT], commit: CommitId) -> ReportT:
        """Publish messages in one snapshot, and return the report of the commit."""

    @abstractmethod
    def _delete(self, messages: Sequence[MessageT]) -> Sequence[str]:
        """Delete the files of messages; return the URIs of files that could not be deleted."""

    def _publish(self, names: Sequence[str], commit: CommitId) -> ReportT:
        read = {name: self._files.read_if_present(name) for name in names}
        results = [result for result in read.values() if result is not None]
        done = self._find_commit(commit)
        if done is not None and len(results) < len(names):
            # An earlier attempt was interrupted while it deleted the records.
            if any(self._where_published(each.messages) is None for each in results):
                raise self._something_else(commit, done)
            return done
        if len(results) < len(names):
            raise self._files.missing(next(name for name, result in read.items() if not result))
        if done is None:
            self._require_kept(names)
            self._require_order(results)
        report = self._commit([each for one in results for each in one.messages], commit)
        if report.unpublished_files:
            raise self._something_else(commit, report)
        return report

    def _require_kept(self, names: Iterable[str]) -> None:
        for name in names:
            if self._files.is_discarded(name):
                raise InvalidRequestError(
                    f"{self._files.address(name)} is being discarded, or a discard of it was "
                    "interrupted, so nothing was published: discard it again, then stage the rows "
                    "again"
                )

    def _something_else(self, commit: CommitId, done: WriteReport) -> InvalidRequestError:
        return InvalidRequestError(
            f"{commit} has published other files before, as snapshot {done.snapshot_id} of "
            f"{self._table}, so nothing was published now; pass another CommitId for "
            "these staged results"
        )

    def _discard(
        self,
        result: StagedResult[MessageT],
        elsewhere: Callable[[Sequence[MessageT]], str | None],
        *,
        dry_run: bool,
    ) -> DiscardReport:
        """Delete a staged result with its data files, and return a report.

        The data files are kept if a snapshot has them, or if ``elsewhere`` returns a reason to keep
        them. Everything is kept with ``dry_run``, and if a publication has claimed the result.
        """
        mark = None if dry_run else self._files.begin_discard(result.name, self._environment)
        left: Sequence[str] = ()
        user = self._files.claimant(result.name, self._environment.now_millis())
        if user is not None:
            if mark is not None:
                self._files.release(mark)
            outcome = "claimed"
            reason = (
                f"user {user!r} is publishing this result, or was interrupted while publishing it: "
                "publish it again, or wait a day and discard it"
            )
        elif needed := self._where_published(result.messages) or elsewhere(result.messages):
            outcome, reason = "published", needed
        else:
            outcome, reason = "discarded", "not published"
            left = () if dry_run else self._delete(result.messages)
        if not dry_run and user is None:
            self._files.delete(result.name)
        return DiscardReport(
            staged=self._files.address(result.name),
            outcome=outcome,
            dry_run=dry_run,
            created_millis=result.created_millis,
            files=result.files,
            bytes=result.bytes,
            left=tuple(left),
            reason=reason,
        )

    def _name(self, address: str) -> str:
        """Return the name of the staged result at the URI ``address``.

        Raise ``InvalidRequestError`` if the URI does not name a staged result of this table.
        """
        require_text("the address of a staged result", address)
        name = self._files.named(address)
        is_ours = name is not None and address == self.address(name)
        if name is None or not (is_ours or self._is_at(address, name)):
            raise InvalidRequestError(
                f"{address!r} is not a staged result of {self._table}: pass the address that "
                "the staging job returned, and open the table for which that job staged rows"
            )
        return name

    def _is_at(self, address: str, name: str) -> bool:
        """Return True if ``address`` is the URI of the result ``name``, possibly in another
        spelling.
        """
        place, found = resolve(address, self._files.storage)
        return place.uri(found) == self._files.address(name)


def _identity(names: Sequence[str]) -> CommitId:
    digest = hashlib.blake2b("\n".join(names).encode(), digest_size=16).hexdigest()
    return CommitId(f"{_USER}{digest}", 0)
