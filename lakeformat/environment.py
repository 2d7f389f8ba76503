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
    """The clock, unique names, sleep and random numbers of an operation; default: the system's."""

    now_millis: Callable[[], int] = _system_millis
    """Returns the current time, in milliseconds since 1970-01-01 UTC."""
    new_id: Callable[[], str] = _random_uuid
    """Returns a new unique name: a random UUID as text."""
    sleep_seconds: Callable[[float], None] = time.sleep
    random_fraction: Callable[[], float] = random.random
    """Returns a random number in [0, 1), for the jitter of retries."""
    has_idle_cores: bool = True
    """True if several threads may decode one file; False if each core already decodes another
    file.
    """
    is_given_up: Callable[[], bool] = _never
    """Returns True to cancel a read. It is called for each batch; after True the read raises
    ``LakeError``.
    """

    def back_off(self, failures: int, *, least_millis: int, longest_millis: int) -> None:
        """Sleep before a retry, with random jitter, so that competing writers wake at different
        times.

        The pause is ``least_millis`` milliseconds after the first failure, and doubles with each
        further failure up to ``longest_millis``. The jitter adds up to 20 %.
        """
        millis = min(least_millis * 2 ** (failures - 1), longest_millis)
        self.sleep_seconds(millis / 1000 * (1 + _JITTER * self.random_fraction()))

    def __reduce__(self) -> str | tuple[type[Environment], tuple[object, ...]]:
        """Pickle ``SYSTEM`` by its name, and any other environment by its attributes.

        ``is_given_up`` is not pickled: in other processes, the ``Executor`` cancels the work.
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
