"""Several actors on one storage, of which one at a time makes one storage call, chosen by a seed.

Each actor is a thread, but only the one whose turn it is runs: it runs to its next storage
call and waits there. The same seed gives the same order of calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from lakeformat.storage import MemoryStorage

_LONGEST_STEP_SECONDS = 30


class _Abandoned(BaseException):
    """Ends an actor whose scheduler has given up."""


class _Actor(threading.Thread):
    def __init__(self, name: str, act: Callable[[], object], back: threading.Semaphore) -> None:
        super().__init__(name=name, daemon=True)
        self._act, self._back = act, back
        self.turn = threading.Semaphore(0)
        self.abandoned = self.done = False
        self.error: BaseException | None = None

    def run(self) -> None:
        self.turn.acquire()
        try:
            if not self.abandoned:
                self._act()
        except _Abandoned:
            pass
        except BaseException as error:  # noqa: BLE001 - the scheduler raises it where it is seen
            self.error = error
        self.done = True
        self._back.release()

    def pause(self) -> None:
        if not self.abandoned:
            self._back.release()
            self.turn.acquire()
        if self.abandoned:
            raise _Abandoned


class Scheduler:
    """Gives turns to actors until all are done."""

    def __init__(self, seed: object) -> None:
        self._random = Random(f"{seed}:turns")
        self._actors: list[_Actor] = []
        self._back = threading.Semaphore(0)
        self.trace: list[str] = []
        """The calls with their actors."""

    def add(self, name: str, act: Callable[[], object]) -> None:
        """An actor; its name is in the trace."""
        self._actors.append(_Actor(name, act, self._back))

    def before_call(self, operation: str, path: str) -> None:
        """Wait for the next turn; threads that are no actors do not wait."""
        actor = threading.current_thread()
        if isinstance(actor, _Actor):
            actor.pause()
            self.trace.append(f"{actor.name}: {operation} {path}")

    def run(self, after_turn: Callable[[], object]) -> None:
        """Wait until every actor is done; raise the error of any of them."""
        for actor in self._actors:
            actor.start()
        alive = list(self._actors)
        try:
            while alive:
                actor = self._random.choice(alive)
                actor.turn.release()
                if not self._back.acquire(timeout=_LONGEST_STEP_SECONDS):
                    raise AssertionError(f"{actor.name} does not come to its next storage call")
                if actor.error is not None:
                    raise actor.error
                if actor.done:
                    alive.remove(actor)
                after_turn()
        finally:
            self._abandon()

    def _abandon(self) -> None:
        for actor in self._actors:
            actor.abandoned = True
            actor.turn.release()
            actor.join(_LONGEST_STEP_SECONDS)


class ScheduledStorage:
    """A storage whose every call waits for the actor's turn; reports published snapshots."""

    def __init__(self, storage: MemoryStorage, scheduler: Scheduler) -> None:
        self._storage, self._scheduler = storage, scheduler
        self.published: list[tuple[str, int]] = []
        """Actor and number of each snapshot since the last check."""

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._storage, name)
        if name in ("read", "open_input", "overwrite", "exists", "list", "delete"):
            return self._scheduled(name, attribute)
        return attribute

    def _scheduled(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: str, *arguments: Any) -> Any:
            self._scheduler.before_call(name, path)
            return method(path, *arguments)

        return call

    def create(self, path: str, content: bytes) -> bool:
        self._scheduler.before_call("create", path)
        done = self._storage.create(path, content)
        if done and "/snapshot/snapshot-" in path:
            number = int(path.rpartition("-")[2])
            self.published.append((threading.current_thread().name, number))
        return done

    @contextmanager
    def open_output(self, path: str) -> Iterator[Any]:
        """Two calls: the name is taken when it is opened, the file is there once it is closed."""
        self._scheduler.before_call("open_output", path)
        with self._storage.open_output(path) as stream:
            yield stream
            self._scheduler.before_call("close_output", path)
