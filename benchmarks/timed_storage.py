"""A storage that measures the time its callers wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from typing import Any

__all__ = ["TimedStorage"]


class TimedStorage:
    """Passes all calls to a storage; ``seconds`` is the time of its calls and streams."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._storage, name)
        if not callable(attribute):
            return attribute
        if name in ("open_input", "open_output"):
            return lambda path: self._stream(lambda: attribute(path))
        return self._timed(attribute)

    @contextmanager
    def _stream(self, opened: Callable[[], AbstractContextManager[Any]]) -> Iterator[_TimedStream]:
        context = self._timed(opened)()
        stream = self._timed(context.__enter__)()
        try:
            yield _TimedStream(stream, self._timed)
        except BaseException as error:
            if not self._timed(context.__exit__)(type(error), error, error.__traceback__):
                raise
        else:
            self._timed(context.__exit__)(None, None, None)

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            began = perf_counter()
            try:
                return call(*arguments, **options)
            finally:
                self.seconds += perf_counter() - began

        return timed


class _TimedStream:
    """A stream whose reads and writes are timed."""

    def __init__(
        self, stream: Any, timed: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        self._stream, self._timed = stream, timed

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._stream, name)
        return self._timed(attribute) if callable(attribute) else attribute
