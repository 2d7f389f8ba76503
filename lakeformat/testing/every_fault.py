# SPDX-License-Identifier: Apache-2.0
"""Runs a scenario once for every storage call and every fault that the call can have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lakeformat.errors import CommitOutcomeUnknownError, UnavailableError
from lakeformat.testing.crashable import CrashableStorage
from lakeformat.testing.faults import Call, Fault, PowerCut, kinds_for

__all__ = ["Scenario", "Trial", "every_fault"]

T = TypeVar("T")

Scenario = Callable[[CrashableStorage, list[T]], object]
"""A function that does the tested work on a storage.

It appends each result that it has received, such as a snapshot id, to the list. A test can then
check that these results survived the fault. The function must make the same storage calls in each
run without faults, so give it fixed ids and no threads.
"""


@dataclass(slots=True)
class Trial(Generic[T]):
    """One run of a scenario with one fault, on its own copy of the storage."""

    call: Call
    fault: Fault
    storage: CrashableStorage
    scenario: Scenario[T]
    acknowledged: list[T] = field(default_factory=list)
    error: BaseException | None = None
    """The error of the fault that stopped the scenario; None if the scenario finished."""

    @property
    def id(self) -> str:
        """The name of the trial, such as ``7:create:snapshot/snapshot-1:power_cut_after``."""
        return f"{self.call}:{self.fault.kind}"

    def __str__(self) -> str:
        return f"{self.id} (seed {self.storage.seed})"

    __repr__ = __str__

    def run(self) -> Trial[T]:
        """Run the scenario, and return this trial; the error of the fault is in ``error``.

        Any other error is raised again, with the trial's name as a note. A scenario that does not
        reach the call of the fault raises ``AssertionError``.
        """
        try:
            self.scenario(self.storage, self.acknowledged)
        except (PowerCut, UnavailableError, CommitOutcomeUnknownError) as error:
            self.error = error
        except BaseException as error:
            error.add_note(f"in trial {self}")
            raise
        if len(self.storage.log) < self.fault.at:
            raise AssertionError(f"{self}: the scenario made fewer calls than without a fault")
        return self

    def reopened(self, *faults: Fault) -> CrashableStorage:
        """Return a copy of the storage in the state that the process after the fault finds."""
        return self.storage.reopened(*faults)


def every_fault(
    scenario: Scenario[T], *, start: CrashableStorage | None = None, seed: int = 0
) -> Iterator[Trial[T]]:
    """Yield a trial for each possible single fault of a scenario; call ``run`` of each trial.

    ``start`` is the storage before the scenario; each trial gets a copy. The seed decides the state
    that a power cut leaves: call again with another seed to test more.
    """
    origin = start if start is not None else CrashableStorage()
    rehearsal = origin.reopened(seed=seed)
    scenario(rehearsal, [])
    for call in rehearsal.log:
        for kind in kinds_for(call.operation):
            fault = Fault(call.number, kind)
            yield Trial(call, fault, origin.reopened(fault, seed=seed), scenario)
