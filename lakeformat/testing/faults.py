# SPDX-License-Identifier: Apache-2.0
"""The faults of storage calls, as values that can be printed and replayed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Call", "Fault", "FaultKind", "PowerCut", "kinds_for"]


class FaultKind(StrEnum):
    """The effect of a fault on one storage call."""

    FAIL_BEFORE = "fail_before"
    """The call does nothing and raises ``UnavailableError``."""
    FAIL_AFTER = "fail_after"
    """The call does its work, but its answer is lost: it raises ``UnavailableError``."""
    POWER_CUT_BEFORE = "power_cut_before"
    POWER_CUT_AFTER = "power_cut_after"
    POWER_CUT_TORN = "power_cut_torn"
    """The power fails during the call, which leaves one of the states that the contract of the
    call allows.
    """


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the call number ``at``, counted from 1."""

    at: int
    kind: FaultKind


@dataclass(frozen=True, slots=True)
class Call:
    """One call in the log of a storage."""

    number: int
    operation: str
    path: str

    def __str__(self) -> str:
        return f"{self.number}:{self.operation}:{self.path}"


class PowerCut(BaseException):
    """Raised by the call at which the power is cut and by every later call, as if the process had
    ended.

    It is not an ``Exception``, so the tested code cannot catch it by accident.
    """


_READS = frozenset({"read", "open_input", "exists", "list", "directory_exists"})
_TEARABLE = frozenset({"close_output", "create", "delete_directory", "overwrite"})


def kinds_for(operation: str) -> tuple[FaultKind, ...]:
    """Return the kinds of faults to test for an operation.

    A reading call leaves the same state whether it fails before or after its work, so only a
    failure before is tested.
    """
    if operation in _READS:
        return (FaultKind.FAIL_BEFORE, FaultKind.POWER_CUT_BEFORE)
    if operation in _TEARABLE:
        return tuple(FaultKind)
    return tuple(kind for kind in FaultKind if kind is not FaultKind.POWER_CUT_TORN)
