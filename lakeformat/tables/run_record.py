# SPDX-License-Identifier: Apache-2.0
"""Records of runs: the file ``run-<user>`` describes the last success of a run.

If a run does its work again after a success, as a cleared Airflow task does, this repetition reads
the record. The snapshot of the success may have expired by then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from lakeformat.environment import Environment
from lakeformat.errors import NotFoundError
from lakeformat.storage import Storage
from lakeformat.tables.json_file import Member, decode_json_file, read_members, write_members

__all__ = ["KEPT_MILLIS", "RunRecord", "RunRecords"]

_PREFIX = "run-"
_REMEDY = "delete the file: a cleared task then counts as one that has not succeeded yet"

KEPT_MILLIS = 90 * 24 * 60 * 60 * 1000
"""The age in milliseconds after which a record is deleted: 90 days."""

_MEMBERS = (
    Member("user", "user", str, required=True),
    Member("identifier", "identifier", int, required=True),
    Member("snapshotId", "snapshot_id", int),
    Member("mark", "mark", int),
    Member("clears", "clears", int),
    Member("attempt", "attempt", int),
    Member("input", "input", str),
    Member("beganMillis", "began_millis", int),
    Member("againMillis", "again_millis", int),
    Member("againHead", "again_head", str),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """The last success of a run, and the start of the repetition that followed it, if any."""

    user: str
    """The commit user of the run."""
    identifier: int
    """The identifier of the last commit of the run."""
    snapshot_id: int | None = None
    """The id of the snapshot that the run published; None if the run published no snapshot."""
    mark: int | None = None
    """A number from the caller. A later attempt with another number, or without one, is a
    repetition.
    """
    clears: int | None = None
    """The number of repetitions that were requested before the success; None if unknown. In Airflow
    this counts the clears of all tasks of the DAG run.
    """
    attempt: int | None = None
    """The number of the attempt that succeeded; None if unknown."""
    input: str | None = None
    """A text of the caller that identifies the input of the run; None if a repetition may use any
    input.
    """
    began_millis: int | None = None
    """The start of the run, in epoch milliseconds; None if unknown. A run that the caller created
    again under the same name has a later start.
    """
    again_millis: int | None = None
    """The start of the first attempt of the repetition, in epoch milliseconds; None without a
    repetition.
    """
    again_head: str | None = None
    """The identity of the newest snapshot when the first attempt of the repetition began; None
    without a repetition, or if the table had no snapshot.
    """


@dataclass(frozen=True, slots=True)
class RunRecords:
    """The records of runs in one directory, which only this library uses."""

    storage: Storage
    directory: str
    old_directory: str | None = None
    """The directory of the records of earlier releases; None if it is ``directory``."""
    may_name: Callable[[Collection[int]], bool] = lambda _: True
    """Takes the snapshot ids in a record; returns True if the record can belong to the table."""
    identifiers: Callable[[], Mapping[str, int] | None] = lambda: None
    """Returns the highest commit identifier of each commit user in the table; None if snapshots
    have expired, because an expired snapshot may have had a higher identifier.
    """
    adopted: Callable[[], RunRecords] | None = None
    """Returns the records from the time before a Mixed table was adopted, when it was an Iceberg
    table. None for other formats.
    """

    def read(self, user: str) -> RunRecord | None:
        """Return the record of a run; None if its file is missing, or left empty by a crash.

        Search ``directory`` first, then ``old_directory``, then ``adopted``. A record in
        ``old_directory`` is ignored if its snapshot is of another table.
        """
        found = self._own(user)
        return self.adopted().read(user) if found is None and self.adopted else found

    def _own(self, user: str) -> RunRecord | None:
        found = self._read(self._path(user))
        if found is None and self.old_directory is not None:
            found = self._read(f"{self.old_directory}/{_name(user)}")
            if found is not None and found.snapshot_id is not None:
                return found if self.may_name([found.snapshot_id]) else None
        return found

    def _read(self, path: str) -> RunRecord | None:
        try:
            content = self.storage.read(path)
        except NotFoundError:
            return None
        if not content:
            return None
        uri = self.storage.uri(path)
        return decode_json_file(
            content, uri, lambda found: RunRecord(**read_members(_MEMBERS, found)), _REMEDY
        )

    def write(self, record: RunRecord, environment: Environment) -> None:
        """Write the record of a run, and delete all records that are older than ``KEPT_MILLIS``."""
        content = json.dumps(write_members(_MEMBERS, record)).encode()
        self.storage.overwrite(self._path(record.user), content)
        oldest = environment.now_millis() - KEPT_MILLIS
        for info in self.storage.list(self.directory):
            is_record = info.name.startswith(_PREFIX) and not info.is_directory
            if is_record and 0 < info.modified_millis < oldest:
                self.storage.delete(info.path)

    def _path(self, user: str) -> str:
        return f"{self.directory}/{_name(user)}"


def _name(user: str) -> str:
    return f"{_PREFIX}{quote(user, safe='')}"
