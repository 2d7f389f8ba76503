# SPDX-License-Identifier: Apache-2.0
"""A storage that can fail or lose power at any call, and be examined afterwards.

It keeps the contract of ``Storage`` and nothing more. After a power cut:

- ``create`` happened whole or not at all;
- a file from ``open_output`` that was not closed is missing or has only its first bytes;
- an interrupted ``overwrite`` left the old content, the new content or an empty file;
- an interrupted ``create`` or ``overwrite`` may also leave a temporary file, whose path
  ``temporary_sibling`` returns;
- an interrupted ``delete_directory`` deleted some of the files;
- the latest calls of ``delete`` may be undone, as on a journaling file system. A delete is durable
  after a later ``create``, ``overwrite``, ``make_directory``, ``delete_directory`` or
  ``close_output`` has succeeded.

The seed selects one of the possible states: the same seed and fault leave the same bytes.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import IO, Any, TypeVar

import pyarrow as pa

from lakeformat.environment import SYSTEM
from lakeformat.errors import AlreadyExistsError, LakeError, UnavailableError
from lakeformat.storage.base import LARGE_FILE, SMALL_FILE, FileInfo, temporary_sibling
from lakeformat.storage.memory import MemoryStorage
from lakeformat.testing.faults import Call, Fault, FaultKind, PowerCut

__all__ = ["CrashableStorage"]

T = TypeVar("T")
Tear = Callable[[Random], object]

_DURABLE = frozenset({"close_output", "create", "delete_directory", "make_directory", "overwrite"})


class CrashableStorage:
    """An in-memory storage that logs every call and raises the planned faults.

    Opening and closing a stream for writing are two calls, ``open_output`` and ``close_output``.
    After a power cut every call raises ``PowerCut``; ``reopened`` returns the storage in the state
    that the next process finds. This storage cannot rename directories: a move copies file by file.
    """

    def __init__(
        self, *faults: Fault, seed: int = 0, clock: Callable[[], int] = SYSTEM.now_millis
    ) -> None:
        self.log: builtins.list[Call] = []
        self.faults = faults
        self.seed = seed
        self._clock = clock
        self._disk = MemoryStorage("crashable", clock=clock)
        self._lock = threading.RLock()
        self._powered = True
        self._writing: dict[str, Any] = {}  # pyarrow.BufferOutputStream
        self._volatile_deletes: builtins.list[tuple[str, bytes]] = []

    def __repr__(self) -> str:
        faults = ", ".join(f"{fault.kind} at {fault.at}" for fault in self.faults) or "no faults"
        return f"CrashableStorage({faults}, seed={self.seed}, {len(self.log)} calls)"

    @property
    def scheme(self) -> str:
        """The text ``crashable``; ``open_storage`` cannot open addresses with this scheme."""
        return "crashable"

    def uri(self, path: str) -> str:
        """Return ``crashable:///<path>``, which only names the file in messages."""
        return f"crashable:///{path.strip('/')}"

    def trace(self) -> str:
        """Return the log of all calls, each as a line ``<number>:<operation>:<path>``."""
        return "\n".join(str(call) for call in self.log)

    def files(self, path: str = "") -> dict[str, bytes]:
        """Return the content of every file below a directory, by path; this call is not logged."""
        return self._disk.files(path)

    def reopened(self, *faults: Fault, seed: int | None = None) -> CrashableStorage:
        """Return a copy of the storage in the state that a new process finds.

        The copy shows the storage as if this process had ended, even without a power cut: files
        that are open for writing are missing or incomplete. The copy has its own ``faults``, and
        the same seed if ``seed`` is None.
        """
        with self._lock:
            new_seed = self.seed if seed is None else seed
            fresh = CrashableStorage(*faults, seed=new_seed, clock=self._clock)
            fresh._disk = self._disk.copy()
            random = self._random("reopened")
            for path, stream in sorted(self._writing.items()):
                fresh._leave_torn(path, stream, random)
            if not self._powered:
                self._undo_deletes(fresh._disk, random)
            return fresh

    def read(self, path: str, limit: int = SMALL_FILE) -> bytes:
        return self._call("read", path, lambda: self._disk.read(path, limit))

    def open_input(self, path: str) -> IO[bytes]:
        """Open a file for reading. This is one logged call; reads from the stream are not
        logged.
        """
        return self._call("open_input", path, lambda: self._disk.open_input(path))

    @contextmanager
    def open_output(self, path: str) -> Iterator[IO[bytes]]:
        """Open a stream for writing; until the with block ends, its file is missing or incomplete.

        The end of the block is another logged call, ``close_output``.
        """
        stream = self._call("open_output", path, lambda: self._start(path))
        try:
            yield stream
            self._call(
                "close_output",
                path,
                lambda: self._finish(path),
                torn=lambda random: self._leave_torn(path, self._writing.pop(path), random, 1),
            )
        finally:
            # The file is unfinished, but the process continues: the block or the close failed.
            with self._lock:
                if self._powered and path in self._writing:
                    self._leave_torn(path, self._writing.pop(path), self._random(path))

    def create(self, path: str, content: bytes) -> bool:
        return self._call(
            "create",
            path,
            lambda: self._disk.create(path, content),
            torn=lambda random: self._tear_create(path, content, random),
        )

    def overwrite(self, path: str, content: bytes) -> None:
        self._call(
            "overwrite",
            path,
            lambda: self._disk.overwrite(path, content),
            torn=lambda random: self._tear_overwrite(path, content, random),
        )

    def exists(self, path: str) -> bool:
        return self._call("exists", path, lambda: self._disk.exists(path))

    def list(self, path: str) -> builtins.list[FileInfo]:
        return self._call("list", path, lambda: self._disk.list(path))

    def make_directory(self, path: str) -> None:
        self._call("make_directory", path, lambda: self._disk.make_directory(path))

    def directory_exists(self, path: str) -> bool:
        return self._call("directory_exists", path, lambda: self._disk.directory_exists(path))

    def delete(self, path: str) -> None:
        self._call("delete", path, lambda: self._delete(path))

    def delete_directory(self, path: str) -> None:
        self._call(
            "delete_directory",
            path,
            lambda: self._disk.delete_directory(path),
            torn=lambda random: self._tear_delete_directory(path, random),
        )

    def _call(self, operation: str, path: str, act: Callable[[], T], torn: Tear | None = None) -> T:
        with self._lock:
            if not self._powered:
                raise PowerCut(f"{operation} {path}: the power is off")
            call = Call(len(self.log) + 1, operation, path)
            self.log.append(call)
            kinds = [fault.kind for fault in self.faults if fault.at == call.number]
            if not kinds:
                return self._carry_out(operation, act)
            self._interrupt(kinds[0], call, act, torn)
            message = f"{call}: {kinds[0]} (seed {self.seed})"
            if kinds[0] in (FaultKind.FAIL_BEFORE, FaultKind.FAIL_AFTER):
                raise UnavailableError(message)
            self._powered = False
            raise PowerCut(message)

    def _interrupt(
        self, kind: FaultKind, call: Call, act: Callable[[], object], torn: Tear | None
    ) -> None:
        random = self._random(call.number)
        # The process has ended, so the caller gets no result: not even that the name was taken.
        with suppress(LakeError):
            if kind is FaultKind.POWER_CUT_TORN and torn is not None:
                torn(random)
            elif kind in (FaultKind.FAIL_AFTER, FaultKind.POWER_CUT_AFTER) or (
                kind is FaultKind.POWER_CUT_TORN and random.random() < 0.5
            ):
                self._carry_out(call.operation, act)

    def _random(self, moment: object) -> Random:
        return Random(f"{self.seed}:{moment}")

    def _carry_out(self, operation: str, act: Callable[[], T]) -> T:
        result = act()
        if operation in _DURABLE and result is not False:
            self._volatile_deletes.clear()
        return result

    def _start(self, path: str) -> IO[bytes]:
        if path in self._writing or self._disk.exists(path):
            raise AlreadyExistsError(f"Cannot create {self.uri(path)}: the name is taken.")
        stream: IO[bytes] = pa.BufferOutputStream()
        self._writing[path] = stream
        return stream

    def _finish(self, path: str) -> None:
        content = self._writing[path].getvalue().to_pybytes()
        if not self._disk.create(path, content):
            raise AlreadyExistsError(f"Cannot create {self.uri(path)}: the name is taken.")
        del self._writing[path]

    def _leave_torn(self, path: str, stream: Any, random: Random, chance: float = 0.5) -> None:
        content = stream.getvalue().to_pybytes()
        if random.random() < chance:
            self._disk.create(path, content[: random.randrange(max(1, len(content)))])

    def _tear_create(self, path: str, content: bytes, random: Random) -> None:
        published = random.random() < 0.5 and self._disk.create(path, content)
        self._leave_sibling(path, content, random, whole=published)

    def _tear_overwrite(self, path: str, content: bytes, random: Random) -> None:
        outcome = random.choice(("old", "new", "empty"))
        if outcome == "old":
            self._leave_sibling(path, content, random)
        else:
            self._disk.overwrite(path, content if outcome == "new" else b"")

    def _leave_sibling(
        self, path: str, content: bytes, random: Random, *, whole: bool = False
    ) -> None:
        prepared = content if whole else content[: random.randint(0, len(content))]
        unique = f"{random.getrandbits(64):x}"
        self._disk.overwrite(temporary_sibling(path, unique), prepared)

    def _tear_delete_directory(self, path: str, random: Random) -> None:
        for file in self._disk.files(path):
            if random.random() < 0.5:
                self._disk.delete(file)
                # The journal is in order: what was deleted earlier is deleted, too.
                self._volatile_deletes.clear()

    def _delete(self, path: str) -> None:
        if self._disk.exists(path):
            self._volatile_deletes.append((path, self._disk.read(path, LARGE_FILE)))
        self._disk.delete(path)

    def _undo_deletes(self, disk: MemoryStorage, random: Random) -> None:
        kept = random.randint(0, len(self._volatile_deletes))
        for path, content in self._volatile_deletes[kept:]:
            disk.create(path, content)
