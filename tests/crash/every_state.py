"""What processes leave behind that die at any storage call: each disk once.

Every fault is met. But many leave the same bytes, as all reads between two writes do, and what
is asked of a disk afterwards has one answer: it follows from the disk and from what was promised.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from lakeformat.testing import CrashableStorage, Scenario, Trial, every_fault

__all__ = ["every_state"]

T = TypeVar("T")


def every_state(
    scenario: Scenario[T], *, start: CrashableStorage, seed: int = 0
) -> Iterator[Trial[T]]:
    """Run the scenario into each fault; of the trials that left the same, the first.

    Not for checks that look at times: a disk is compared by its files, directories and their bytes.
    """
    seen = set()
    for trial in every_fault(scenario, start=start, seed=seed):
        disk = trial.run().reopened()
        directories = (frozenset(disk._disk._made), frozenset(disk._disk._gone))
        state = (frozenset(disk.files().items()), directories, repr(trial.acknowledged))
        if (left := hash(state)) not in seen:
            seen.add(left)
            yield trial
