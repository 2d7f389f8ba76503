"""A storage in which something else happens just before one chosen call."""

from __future__ import annotations

from collections.abc import Callable

from lakeformat.storage import MemoryStorage

WATCHED = ("read", "open_input", "open_output", "create", "overwrite", "exists", "list", "delete")


class Interrupted:
    """Lets ``happens`` happen before the call with the number ``at``; calls count from 1."""

    def __init__(self, storage: MemoryStorage, at: int, happens: Callable[[], object]) -> None:
        self._storage, self._at, self._happens = storage, at, happens
        self.calls: list[tuple[str, str]] = []
        self.happened = False

    def __getattr__(self, name):
        attribute = getattr(self._storage, name)
        return self._counted(name, attribute) if name in WATCHED else attribute

    def _counted(self, name, method):
        def call(path, *arguments):
            self.calls.append((name, path))
            if len(self.calls) == self._at:
                self.happened = True
                self._happens()
            return method(path, *arguments)

        return call
