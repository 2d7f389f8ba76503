# SPDX-License-Identifier: Apache-2.0
"""The files in one directory that record which source files the runs of a task have ingested."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import lakeformat as lake
from lakeformat.storage import Storage
from lakeformat.tables.json_file import Member, decode_json_file, read_members, write_members
from spark_jobs.ingestion.source_files import FileState

__all__ = ["ALL", "DONE", "Record", "RecordFiles", "published"]

DONE, ALL = ".done", ".all"
_REMEDY = "delete this record of source files: a job that finds these files then ingests them again"
_MEMBERS = (
    Member("user", "user", str, required=True),
    Member("identifier", "identifier", int, required=True),
    Member("firstTryMillis", "first_try_millis", int),
    Member("firstTryHead", "first_try_head", str),
)
_RUN = Member("run", "run", str)


@dataclass(frozen=True, slots=True)
class Record:
    """The source files of one commit, each with its state."""

    commit: lake.CommitId
    run: str
    """The name of the run. The commits of a task's map indexes have different users and the same
    run.
    """
    files: Mapping[str, FileState]
    kept: Mapping[str, FileState] = field(default_factory=dict)
    """The files of earlier commits of the same user. This commit has not replaced their rows."""

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> Record:
        files, kept = (
            {path: (int(size), mark) for path, (size, mark) in found.items()}
            for found in (members["files"], members.get("kept", {}))
        )
        commit = lake.CommitId(**read_members(_MEMBERS, members))
        return cls(commit, read_members([_RUN], members).get(_RUN.name, commit.user), files, kept)

    def to_json(self) -> dict[str, Any]:
        run = {} if self.run == self.commit.user else {_RUN.key: self.run}
        kept = {"kept": dict(self.kept)} if self.kept else {}
        return {**write_members(_MEMBERS, self.commit), **run, "files": dict(self.files), **kept}

    @property
    def ingested(self) -> dict[str, FileState]:
        """The files with rows in the table, each in its newest state."""
        return {**self.kept, **self.files}

    @property
    def identity(self) -> tuple[str, int]:
        return self.commit.user, self.commit.identifier


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """The records of one task, and the files that mark a record as published."""

    storage: Storage
    directory: str
    prefix: str

    def names(self) -> set[str]:
        """Return the names of all records and marks, without ``prefix``."""
        names = (info.name for info in self.storage.list(self.directory))
        return {name.removeprefix(self.prefix) for name in names if name.startswith(self.prefix)}

    def read(self, name: str) -> list[Record]:
        """Return the records in a file. Only a file of merged records has more than one."""
        path = self._path(name)
        content = self.storage.read(path)
        return decode_json_file(content, self.storage.uri(path), _records_of, _REMEDY)

    def read_all(self, names: set[str], marks: set[str]) -> tuple[list[Record], dict[str, Record]]:
        """Return the records in ``names`` that are published according to ``marks``, and a mapping
        from ids to the other records.
        """
        done = published(marks) & names
        pending = {name: self.read(name)[0] for name in names - done if not name.endswith(DONE)}
        return [record for name in done for record in self.read(name)], pending

    def uri(self, name: str) -> str:
        """Return the URI of a record."""
        return self.storage.uri(self._path(name))

    def exists(self, name: str) -> bool:
        """Return True if a record or a mark exists."""
        return self.storage.exists(self._path(name))

    def create(self, name: str, content: Mapping[str, Any]) -> None:
        """Create a record or a mark."""
        self.storage.create(self._path(name), json.dumps(content).encode())

    def delete(self, names: Iterable[str]) -> None:
        """Delete records and marks."""
        for name in names:
            self.storage.delete(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self.directory}/{self.prefix}{name}"


def published(names: set[str]) -> set[str]:
    """Return the names of the records that are marked as published."""
    return {name for name in names if name.endswith(ALL) or name + DONE in names}


def _records_of(members: Mapping[str, Any]) -> list[Record]:
    return [Record.from_json(each) for each in members.get("runs", [members])]
