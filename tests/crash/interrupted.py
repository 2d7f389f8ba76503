"""A storage in which something else happens just before one chosen call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from lakeformat.storage import MemoryStorage
from tests.sampling import sampled_moments

__all__ = ["Interrupted", "each_moment"]

WATCHED = ("read", "open_input", "open_output", "create", "overwrite", "exists", "list", "delete")


class Interrupted:
    """Lets ``happens`` happen before the call with the number ``at``; calls count from 1."""

    def __init__(self, storage: MemoryStorage, at: int, happens: Callable[[], object]) -> None:
        self._storage, self.at, self._happens = storage, at, happens
        self.calls: list[tuple[str, str]] = []
        self.happened = False

    def __getattr__(self, name):
        attribute = getattr(self._storage, name)
        return self._counted(name, attribute) if name in WATCHED else attribute

    def _counted(self, name, method):
        def call(path, *arguments):
            self.calls.append((name, path))
            if len(self.calls) == self.at:
                self.happened = True
                self._happens()
            return method(path, *arguments)

        return call


def each_moment(
    start: MemoryStorage, calls: Sequence[tuple[str, str]], rival: Callable[[Recorded], object]
) -> Iterator[tuple[MemoryStorage, Interrupted]]:
    """Copies of ``start`` in which the rival comes before one of these calls of a work, sampled.

    The caller runs the work before it asks for the next copy. If the rival is independent of a
    call, its order with that call does not matter: of moments with only such calls between them,
    the first is tried.
    """
    tried = 0
    for moment in sampled_moments(calls):
        if moment <= tried:
            continue
        storage = start.copy()
        seen = Recorded(storage)
        slept = Interrupted(storage, moment, lambda seen=seen: rival(seen))
        yield storage, slept
        tried = moment
        while tried <= len(slept.calls) and _is_apart(slept.calls[tried - 1], seen.calls):
            tried += 1


class Recorded:
    """A storage that keeps what is called, with each path."""

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage
        self.calls: set[tuple[str, str]] = set()

    def __getattr__(self, name):
        attribute = getattr(self._storage, name)
        return self._kept(name, attribute) if callable(attribute) else attribute

    def _kept(self, name, method):
        def call(*arguments):
            self.calls.update((name, each) for each in arguments if isinstance(each, str))
            return method(*arguments)

        return call


_READS = {"read", "open_input", "exists", "list", "directory_exists", "uri"}


def _is_apart(call: tuple[str, str], others: Iterable[tuple[str, str]]) -> bool:
    """True if the two calls are independent: both read, or they use different places."""
    name, path = call
    return not any(
        f"{path}/".startswith(f"{other}/") or other.startswith(f"{path}/")
        for kind, other in others
        if not {name, kind} <= _READS
    )
