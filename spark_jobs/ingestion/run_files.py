# SPDX-License-Identifier: Apache-2.0
"""Records which files the runs of a task have ingested, so that a later run ingests only new files.

The records are in the directory of the table, beside the files ``run-<user>`` of
``lakeformat/tables/run_record.py``. ``files-<digest>-<id>`` lists the source files of one commit,
and is written before the commit. ``files-<digest>-<id>.done`` marks that the commit is published.
``<digest>`` is a digest of the task's name, which all map indexes of the task share; ``<id>`` is
new in each attempt. A record without a mark counts if its commit is in the table, because its
process may have been killed after the commit.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import lakeformat as lake
from lakeformat.environment import SYSTEM
from lakeformat.tables.kept_files import kept_if_published
from spark_jobs.ingestion.record_files import ALL, DONE, Record, RecordFiles, published
from spark_jobs.ingestion.source_files import FileState, change_of

if TYPE_CHECKING:
    from lakeformat.tables.run_record import RunRecords
    from spark_jobs.runtime.job import Outcome

__all__ = ["RunFiles"]

_log = logging.getLogger(__name__)

_MERGED_FROM = 100
"""The number of records and marks of a task above which its published records are merged."""
_READINGS = 5
_SHOWN = 3
"""The largest number of file names in a message."""


class RunFiles:
    """The source files that the runs of one task have ingested into a table."""

    def __init__(
        self, table: Any, task: str, commit: lake.CommitId, run: str | None = None
    ) -> None:
        """``task`` is a name of the task, the same in all of its runs. ``commit`` is the commit
        identity of this run. ``run`` is the name of this run if it has several commits, such as
        those of map indexes. Default: the user of ``commit``.
        """
        runs: RunRecords = table.runs
        self._runs = runs
        self._find_commit = table.find_commit
        self._commit = commit
        self._run = commit.user if run is None else run
        digest = hashlib.blake2b(task.encode(), digest_size=16).hexdigest()
        files = partial(RecordFiles, prefix=f"files-{digest}-")
        self._files: RecordFiles = files(runs.storage, runs.directory)
        old = runs.old_directory
        self._old: RecordFiles | None = None if old is None else files(runs.storage, old)
        self._old_ids: set[str] = set()
        self._unmarked: list[str] = []
        self._kept: Mapping[str, FileState] = {}
        """The files of earlier commits of this run. This commit keeps the rows of these files."""

    def new_files(self, found: Mapping[str, FileState]) -> dict[str, FileState]:
        """Return those files of ``found`` that no other run has ingested.

        Raise ``InvalidRequestError`` if a file has changed since another run ingested it. In a
        repeated run, such as that of a cleared task, this is only logged. Files that another commit
        of this run has ingested are returned, with a warning. Raise ``CommitUndecidableError`` if
        it is unknown whether a killed run has committed.
        """
        taken: dict[str, FileState] = {}
        run_of: dict[str, str] = {}
        beside: set[str] = set()
        own: Mapping[str, FileState] | None = None
        for record in self._newest_of_each_commit(found.keys()):
            if record.commit.user == self._commit.user:
                own = record.files
                self._kept = record.ingested if self._commit.replaces is None else record.kept
            elif record.run == self._run:
                beside.update(record.ingested)
            else:
                taken.update(record.ingested)
                run_of.update(dict.fromkeys(record.ingested, str(record.run or record.commit.user)))
        for path in sorted(found.keys() & taken):
            if found[path] == taken[path]:
                continue
            if own is None:
                raise _changed(path, taken[path], found[path])
            _log.warning(
                "skipping %s: run %s has ingested this file, which has changed since (%s). To "
                "ingest the new content, clear the task of that run",
                path,
                run_of[path],
                change_of(taken[path], found[path]),
            )
        new = {path: state for path, state in found.items() if path not in taken}
        if twice := sorted(beside.intersection(new)):
            _log.warning(
                "also ingesting %s, which another map index of this run has ingested: clear all "
                "map indexes of the task together, or these rows are in the table twice. If the "
                "task has fewer map indexes than before, the rows of the removed indexes remain in "
                "the table. To remove these rows, add one file without rows for each removed index "
                "to the end of the list of files, and clear all map indexes again",
                _shown(twice),
            )
        self._require_files(own or {}, found, new)
        return new

    def _require_files(
        self, own: Iterable[str], found: Collection[str], new: Collection[str]
    ) -> None:
        """Warn about files in ``own`` that are missing in ``found``: the commit removes their rows.

        ``own`` are the files that this run has ingested before. If ``new`` has no file to ingest,
        raise ``InvalidRequestError`` instead. Do nothing if the commit keeps the rows of the run's
        earlier commit.
        """
        missing = sorted(set(own).difference(found))
        if not missing or self._commit.replaces is None:
            return
        names = _shown(missing)
        if not new:
            raise lake.InvalidRequestError(
                f"files that this run has ingested before are missing now ({names}), and there is "
                "no other file to ingest: nothing was changed. Restore the files and clear the "
                "task again; or, to keep the rows, set on_clear='skip' in the DAG and clear the "
                "task again"
            )
        _log.warning(
            "removing the rows of files that this run has ingested before and that are missing "
            "now: %s. To get the rows back, restore the files and clear the task again",
            names,
        )

    def ingest(self, files: Mapping[str, FileState], commit: Callable[[], Outcome]) -> Outcome:
        """Record ``files``, call ``commit``, which commits their rows, and return its outcome.

        The record is deleted if the call fails before its commit.
        """
        self._runs.storage.make_directory(self._runs.directory)
        id = SYSTEM.new_id()
        self._create(id, Record(self._commit, self._run, files, self._kept).to_json())
        with kept_if_published(lambda: self._delete([id])):
            result = commit()
        if result.replayed:
            self.mark_published()
        else:
            self._mark(id)
        return result

    def mark_others(self) -> None:
        """Mark records of other runs as published, if their attempts were killed after the commit.

        ``new_files`` has found these commits. Without the marks, a later run could not find them
        after their snapshots have expired.
        """
        for id in self._unmarked:
            self._create(id + DONE, {})

    def mark_published(self) -> None:
        """Mark the record of an earlier attempt, which has published the commit of this run. Raise
        ``CommitUndecidableError`` if several attempts were killed and their records name different
        files.
        """
        done, pending = self._read()
        identity = self._commit.user, self._commit.identifier
        own = self._attempts(pending).get(identity, {})
        if any(record.identity == identity for record in done):
            self._delete(own)
        elif own:
            self._mark(_only_one(own, self._uri))

    def _mark(self, id: str) -> None:
        """Mark the record ``id`` of this run's commit as published. Delete the records of other
        attempts of the same commit, and merge the marked records if there are many.
        """
        self._create(id + DONE, {})
        pending = self._read()[1]
        own = self._commit.user, self._commit.identifier
        self._delete(name for name, record in pending.items() if record.identity == own)
        names = self._names()
        if len(names) > _MERGED_FROM or self._old_names(names):
            with suppress(lake.NotFoundError):  # another run has merged them
                self._merge(names)

    def _newest_of_each_commit(self, found: Collection[str]) -> Iterable[Record]:
        """Return the record of the last published commit of each commit user.

        A killed run leaves a record without a mark. The commit of such a run is looked up only if
        the record names a file of ``found`` that no other run has ingested. Raise
        ``CommitUndecidableError`` if it is unknown whether the killed run has committed, or which
        of its attempts has.
        """
        done, pending = self._read()
        others = [record for record in done if record.run != self._run]
        open_files = set(found).difference(*(record.ingested for record in others))
        of_others = {id: each for id, each in pending.items() if each.run != self._run}
        for attempts in self._attempts(of_others).values():
            files = {path for each in attempts.values() for path in each.files}
            if not open_files.isdisjoint(files) and self._is_published(attempts):
                id = _only_one(attempts, self._uri)
                self._unmarked.append(id)
                done.append(attempts[id])
        return _newest(done)

    def _is_published(self, attempts: Mapping[str, Record]) -> bool:
        [commit, *_] = [record.commit for record in attempts.values()]
        try:
            return self._find_commit(commit) is not None
        except lake.CommitUndecidableError:
            uris = " and ".join(map(self._uri, sorted(attempts)))
            left = "the record" if len(attempts) == 1 else "the records"
            raise lake.CommitUndecidableError(
                "another run of this task was killed or still runs, and its commit cannot be "
                "found, because snapshots have expired since. First make sure that the run has "
                f"ended. It left {left} {uris}. A record lists source files. If the table has the "
                "rows of these files, create a file beside the record, with the content {} and "
                f"the name of the record followed by {DONE!r}; otherwise delete the record. Then "
                "clear this task"
            ) from None

    def _attempts(self, pending: Mapping[str, Record]) -> dict[tuple[str, int], dict[str, Record]]:
        found: dict[tuple[str, int], dict[str, Record]] = {}
        for id, record in pending.items():
            found.setdefault(record.identity, {})[id] = record
        return found

    def _read(self) -> tuple[list[Record], dict[str, Record]]:
        """Return the records that are marked as published, and all other records by record id.
        Raise ``CommitConflictError`` if other runs keep changing them.
        """
        for _ in range(_READINGS):
            with suppress(lake.NotFoundError):  # another run has merged the records
                names = self._names()
                done, pending = self._files.read_all(names, names)
                old_done, old_pending = self._read_old(names, done)
                return done + old_done, old_pending | pending
        raise lake.CommitConflictError(
            f"other runs changed the records {self._files.uri('')}* while they "
            "were read: run the job again"
        )

    def _old_names(self, names: set[str]) -> set[str]:
        """Return the names of records and marks in the directory of earlier releases.

        The first merge moves the old records, so return no names if ``names`` has a merged record.
        """
        return set() if self._old is None or _merged(names) else self._old.names()

    def _read_old(
        self, names: set[str], done: Sequence[Record]
    ) -> tuple[list[Record], dict[str, Record]]:
        """Return the records in the directory of earlier releases, divided as by ``_read``.
        ``done`` has the published records in the current directory.
        """
        if self._old is None or not (old := self._old_names(names)):
            return [], {}
        found, pending = self._old.read_all(old, old | names)
        if (identifiers := self._runs.identifiers()) is not None:
            found = [each for each in found if _is_in(identifiers, each.commit)]
        identities = {each.identity for each in (*found, *done)}
        left = {id: each for id, each in pending.items() if each.identity not in identities}
        self._old_ids = {*left}
        return found, left

    def _merge(self, names: set[str]) -> None:
        """Replace the records of published commits by one file with the newest record of each
        commit user.
        """
        done = published(names)
        records = [record for name in done for record in self._files.read(name)]
        old_records, old_pending = self._read_old(names, records)
        for id, record in old_pending.items():
            self._create(id, record.to_json())
        merged = {"runs": [each.to_json() for each in _newest(records + old_records)]}
        self._create(SYSTEM.new_id() + ALL, merged)
        self._delete(done)
        self._delete(name + DONE for name in done)
        self._delete_left_marks(names)

    def _delete_left_marks(self, names: set[str]) -> None:
        """Delete marks whose records were deleted by a merge that was killed."""
        marked = {name.removesuffix(DONE) for name in names if name.endswith(DONE)}
        left = (id for id in marked - names if not self._files.exists(id))
        self._delete(id + DONE for id in left)

    def _names(self) -> set[str]:
        """Return the names of all records and marks.

        If records are merged during a listing of several pages, the listing may miss both the
        merged record and those that it replaces. So list again while there is a new merged record.
        """
        names = self._listed()
        for _ in range(_READINGS):
            if _merged(again := self._listed()) <= _merged(names):
                break
            names = again
        return names

    def _listed(self) -> set[str]:
        return self._files.names()

    def _uri(self, id: str) -> str:
        is_old = self._old is not None and id in self._old_ids
        return (self._old if is_old and self._old else self._files).uri(id)

    def _create(self, name: str, content: Mapping[str, Any]) -> None:
        self._files.create(name, content)

    def _delete(self, names: Iterable[str]) -> None:
        self._files.delete(names)


def _is_in(identifiers: Mapping[str, int], commit: lake.CommitId) -> bool:
    """Return True if the table has ``commit``. ``identifiers`` maps each user to the number of its
    newest commit in the table.

    If the table lacks ``commit``, the record of ``commit`` belongs to another table that has or had
    the same directory.
    """
    return identifiers.get(commit.user, -1) >= commit.identifier


def _merged(names: set[str]) -> set[str]:
    return {name for name in names if name.endswith(ALL)}


def _shown(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_SHOWN]) + (" ..." if len(paths) > _SHOWN else "")


def _newest(records: Iterable[Record]) -> list[Record]:
    """Return the record of the last commit of each commit user.

    A cleared run commits again as the same user. The last record is enough: its commit replaced the
    rows of the earlier commit, or the record also names the files of the earlier commit.
    """
    ordered = sorted(records, key=lambda record: record.commit.identifier)
    return [*{record.commit.user: record for record in ordered}.values()]


def _only_one(attempts: Mapping[str, Record], uri: Callable[[str], str]) -> str:
    """Return the id of one of ``attempts``, if all of them name the same files. ``attempts`` are
    the records of one published commit, by id.

    Raise ``CommitUndecidableError`` if they name different files: then it is unknown which attempt
    has published its rows. ``uri`` returns the URI of a record, for this error.
    """
    if len({json.dumps(record.to_json()["files"]) for record in attempts.values()}) > 1:
        raise lake.CommitUndecidableError(
            "several attempts of a run were killed, and one of them published its rows. Their "
            f"records {' and '.join(map(uri, sorted(attempts)))} name different files. "
            "Delete the record of each attempt whose rows are not in the table. Then clear this "
            "task"
        )
    return min(attempts)


def _changed(path: str, before: FileState, now: FileState) -> lake.InvalidRequestError:
    return lake.InvalidRequestError(
        f"{path} has changed since an earlier run ingested it ({change_of(before, now)}), and its "
        "rows may be in the table already. To add only its new rows, put them into a file with a "
        "new name, and move this file away. To ingest all files in every run, pass "
        "ingest_again=True (outside of Airflow: leave out 'ingested_by'). To replace the rows of "
        "the earlier run, clear its task"
    )
