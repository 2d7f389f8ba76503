"""A world in which every run makes the same calls: time stands still, and names are counted."""

from __future__ import annotations

import itertools

from lakeformat.environment import Environment

NOW_MILLIS = 1_700_000_000_000


class Clock:
    """A time that only the test changes."""

    def __init__(self, millis: int = NOW_MILLIS) -> None:
        self.millis = millis

    def __call__(self) -> int:
        return self.millis


def simulated(first: int = 0) -> Environment:
    """``first`` keeps names apart from those of other runs over the same storage."""
    names = itertools.count(first * 1000)
    return Environment(
        now_millis=lambda: NOW_MILLIS,
        new_id=lambda: f"{next(names):08d}",
        sleep_seconds=lambda seconds: None,
        random_fraction=lambda: 0.5,
    )
