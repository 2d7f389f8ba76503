# SPDX-License-Identifier: Apache-2.0
"""The files of consumers: ``consumer-<id>`` stores the progress of one reader of changes.

A writer overwrites the file in place, so a read may find it empty or incomplete. Such a file is
read again before it is reported as damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lakeformat.environment import Environment
from lakeformat.errors import CorruptTableError, NotFoundError
from lakeformat.storage import FileInfo, Storage
from lakeformat.tables.consumers.report import ConsumerReport
from lakeformat.tables.file_name_part import check_file_name_part, suffixed
from lakeformat.tables.json_file import decode_json_file
from lakeformat.tables.name_pattern import name_pattern
from lakeformat.types.sentence import sentence

__all__ = ["ConsumerFiles", "consumers_in"]

TRIES = 10
PAUSE_SECONDS = 0.2

_PREFIX = "consumer-"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ConsumerFiles:
    """The files of all consumers in one directory."""

    storage: Storage
    directory: str

    def modified(self) -> Iterator[tuple[str, int]]:
        """Yield the id of each consumer, and the time of its last progress in epoch
        milliseconds.
        """
        return consumers_in(self.storage.list(self.directory))

    def ids(self) -> list[str]:
        """Return the ids of all consumers, sorted."""
        return sorted(name for name, _ in self.modified())

    def read(
        self,
        consumer_id: str,
        build: Callable[[Mapping[str, Any]], _T],
        remedy: str,
        environment: Environment,
    ) -> _T | None:
        """Read the progress of a consumer; None if the consumer does not exist.

        ``build`` makes the result from the members of the file. A file that is damaged in each of
        ``TRIES`` reads raises ``CorruptTableError``, whose message has ``remedy``.
        """
        for remaining in reversed(range(TRIES)):
            try:
                path, content = self.find(consumer_id)
            except NotFoundError:
                return None
            try:
                return decode_json_file(content, self.storage.uri(path), build, remedy)
            except CorruptTableError as reason:
                if not remaining:
                    raise CorruptTableError(
                        f"{sentence(reason)} The file was damaged in each of {TRIES} reads, so "
                        "this is not a write in progress"
                    ) from None
            environment.sleep_seconds(PAUSE_SECONDS)
        raise AssertionError("the last try returns or raises")

    def find(self, consumer_id: str) -> tuple[str, bytes]:
        """Return the path and the content of a consumer's file; raise ``NotFoundError`` if it is
        missing.
        """
        path = self._path(consumer_id)
        return path, self.storage.read(path)

    def write(self, consumer_id: str, content: bytes) -> None:
        """Write the progress of a consumer."""
        self.storage.overwrite(self._path(consumer_id), content)

    def delete(self, consumer_id: str) -> None:
        """Delete the file of a consumer; do nothing if it is missing."""
        self.storage.delete(self._path(consumer_id))

    def unknown(self, consumer_id: str, table: str) -> NotFoundError:
        """Return the error for a consumer that does not exist, with the ids of the existing
        consumers.
        """
        known = self.ids()
        named = (
            f"it has {', '.join(map(repr, known))}"
            if known
            else "it has none. table.consumers.set() or a stream with a consumer creates one"
        )
        return NotFoundError(f"{table} has no consumer {consumer_id!r}; {named}")

    def clear(
        self, table: str, including: str, excluding: str | None, *, dry_run: bool
    ) -> ConsumerReport:
        """Delete the consumers whose whole id matches ``including`` but not ``excluding``.

        Both are regular expressions; an invalid one raises ``InvalidRequestError``. A dry run
        deletes nothing.
        """
        wanted = name_pattern("including", including)
        unwanted = None if excluding is None else name_pattern("excluding", excluding)
        return self._forget(
            table,
            lambda name, _: (
                bool(wanted.fullmatch(name))
                and not (unwanted is not None and unwanted.fullmatch(name))
            ),
            dry_run=dry_run,
        )

    def expire(self, table: str, older_than: int, *, dry_run: bool) -> ConsumerReport:
        """Delete the consumers without progress since ``older_than``, in epoch milliseconds.

        A dry run deletes nothing.
        """
        return self._forget(table, lambda _, modified: modified < older_than, dry_run=dry_run)

    def _forget(
        self, table: str, is_meant: Callable[[str, int], bool], *, dry_run: bool
    ) -> ConsumerReport:
        removed: list[str] = []
        kept: list[str] = []
        for consumer_id, modified in self.modified():
            (removed if is_meant(consumer_id, modified) else kept).append(consumer_id)
        if not dry_run:
            for consumer_id in removed:
                self.delete(consumer_id)
        return ConsumerReport(table, dry_run, tuple(removed), tuple(kept))

    def _path(self, consumer_id: str) -> str:
        check_file_name_part("consumer id", consumer_id)
        return f"{self.directory}/{_PREFIX}{consumer_id}"


def consumers_in(files: Iterable[FileInfo]) -> Iterator[tuple[str, int]]:
    """Yield the id of each consumer in a listing of files, and the time of its last progress."""
    for info in files:
        name = suffixed(info.name, _PREFIX)
        if name is not None and not info.is_directory:
            yield name, info.modified_millis
