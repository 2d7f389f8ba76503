"""Work on tables for a page: beside the server's event loop, a few at a time, for a while."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

__all__ = ["AT_ONCE", "PATIENCE_SECONDS", "BusyError", "SlowError", "beside_the_loop"]

AT_ONCE = 4
"""So many pages look at tables at a time; what hangs takes no more of the API server."""
PATIENCE_SECONDS = 20.0

_free = threading.BoundedSemaphore(AT_ONCE)

T = TypeVar("T")


class BusyError(Exception):
    """As many pages as may be are at work already."""


class SlowError(Exception):
    """The work took too long; it goes on, and nobody waits for it."""


async def beside_the_loop(work: Callable[[], T]) -> T:
    """The result of some work in a thread of its own.

    The thread does not hold up the end of the server, as those of a pool would: a storage that
    never answers cannot be interrupted.
    """
    if not _free.acquire(blocking=False):
        raise BusyError
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if done.done():  # nobody waits any more
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as reason:  # noqa: BLE001 - whoever waits is told
            error = reason
        finally:
            _free.release()
        with suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(tell, result, error)

    try:
        threading.Thread(target=run, name="lake-page", daemon=True).start()
    except RuntimeError:  # the machine has no thread left
        _free.release()
        raise BusyError from None
    try:
        return await asyncio.wait_for(done, PATIENCE_SECONDS)
    except TimeoutError:
        if done.done() and not done.cancelled():
            raise  # it is the work's own
        raise SlowError from None
