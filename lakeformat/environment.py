"""What the engine takes from outside: time, unique names, waiting and chance.

They arrive as one argument so that a simulation can own them and a test can replay a run.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["SYSTEM", "Environment"]


def _system_millis() -> int:
    return time.time_ns() // 1_000_000


def _random_uuid() -> str:
    return str(uuid.uuid4())


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Environment:
    """Clock, unique names, sleep and jitter; the default is the real world."""

    now_millis: Callable[[], int] = _system_millis
    """Epoch milliseconds."""
    new_id: Callable[[], str] = _random_uuid
    """A name nobody else has: a random UUID in text form."""
    sleep_seconds: Callable[[float], None] = time.sleep
    random_fraction: Callable[[], float] = random.random
    """A number in [0, 1), for the jitter of retries."""
    has_idle_cores: bool = True
    """Whether one file may be decoded by several threads; not where every core has a file."""
    is_given_up: Callable[[], bool] = _never
    """Asked while data files are read: whether nobody waits any more for what comes of it."""

    def __reduce__(self) -> str | tuple[type[Environment], tuple[object, ...]]:
        """The real world is the same everywhere; its chance is not sent along.

        Nor is who gives up: work elsewhere is ended by whoever sent it there.
        """
        if self == SYSTEM:
            return "SYSTEM"
        return Environment, (
            self.now_millis,
            self.new_id,
            self.sleep_seconds,
            self.random_fraction,
            self.has_idle_cores,
        )


SYSTEM = Environment()
