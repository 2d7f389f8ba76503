# SPDX-License-Identifier: Apache-2.0
"""Runs work on tables for a page in a few threads, with a time limit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

__all__ = ["AT_ONCE", "PATIENCE_SECONDS", "BusyError", "SlowError", "beside_the_loop"]

AT_ONCE = 4
"""The largest number of pages that read tables at the same time, so that a storage that does
not answer does not block the API server.
"""
PATIENCE_SECONDS = 20.0

_free = threading.BoundedSemaphore(AT_ONCE)

T = TypeVar("T")


class BusyError(Exception):
    """``AT_ONCE`` pages are reading tables already, or the machine cannot start another thread."""


class SlowError(Exception):
    """The work took longer than ``PATIENCE_SECONDS``; it continues, and its result is discarded."""


async def beside_the_loop(work: Callable[[], T]) -> T:
    """Run ``work`` in a new thread, and return the result. Raise ``BusyError`` or ``SlowError`` if
    a limit is exceeded.

    A storage that never answers blocks the thread forever. So the thread is a daemon, which does
    not delay the end of the server.
    """
    if not _free.acquire(blocking=False):
        raise BusyError
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def resolve(result: T | None, error: BaseException | None) -> None:
        if done.done():  # the page has given up waiting
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as reason:  # noqa: BLE001 - the waiting page raises it
            error = reason
        finally:
            _free.release()
        with suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(resolve, result, error)

    try:
        threading.Thread(target=run, name="lake-page", daemon=True).start()
    except RuntimeError:  # the machine cannot start another thread
        _free.release()
        raise BusyError from None
    try:
        return await asyncio.wait_for(done, PATIENCE_SECONDS)
    except TimeoutError:
        if done.done() and not done.cancelled():
            raise  # a timeout that the work itself has raised
        raise SlowError from None
