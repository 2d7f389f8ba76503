"""A storage that records every call: on an object store, every request."""

from __future__ import annotations

from typing import Any

CALLS = ("read", "open_input", "open_output", "create", "overwrite", "exists", "list", "delete")


class CountingStorage:
    """Hands everything over to a storage; ``calls`` are operation and path of each call."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self.calls: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._storage, name)
        if name not in CALLS:
            return attribute

        def call(path: str, *arguments: Any) -> Any:
            self.calls.append((name, path))
            return attribute(path, *arguments)

        return call
