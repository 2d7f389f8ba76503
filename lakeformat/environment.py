# SPDX-License-Identifier: Apache-2.0
"""Clock, unique names, sleep and random numbers, passed in as one argument.

A simulation can replace them, and a test can repeat a run exactly.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["SYSTEM", "Environment"]

_JITTER = 0.2


def _system_millis() -> int:
    return time.time_ns() // 1_000_000


def _random_uuid() -> str:
    return str(uuid.uuid4())


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Environment:
    """Clock, unique names, sleep and jitter; the default is the system's own."""

    now_millis: Callable[[], int] = _system_millis
    """Epoch milliseconds."""
    new_id: Callable[[], str] = _random_uuid
    """Return a new unique name: a random UUID as text."""
    sleep_seconds: Callable[[float], None] = time.sleep
    random_fraction: Callable[[], float] = random.random
    """A number in [0, 1), for the jitter of retries."""
    has_idle_cores: bool = True
    """True if several threads may decode one file; False if each core already has a file of its
    own.
    """
    is_given_up: Callable[[], bool] = _never
    """Returns True if the reader was cancelled and may stop; called while data files are read."""

    def back_off(self, failures: int, *, least_millis: int, longest_millis: int) -> None:
        """Sleep twice as long after each failure, with jitter: competing writers then wake at
        different times.
        """
        millis = min(least_millis * 2 ** (failures - 1), longest_millis)
        self.sleep_seconds(millis / 1000 * (1 + _JITTER * self.random_fraction()))

    def __reduce__(self) -> str | tuple[type[Environment], tuple[object, ...]]:
        """Pickle the system environment by name, any other without ``random_fraction``.

        ``is_given_up`` is left out as well: the executor stops remote work itself.
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
