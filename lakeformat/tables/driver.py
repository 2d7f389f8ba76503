# SPDX-License-Identifier: Apache-2.0
"""The loop of every operation that moves data: plan, run, commit, and plan again after a conflict.

``Steps`` has the functions of one operation. ``carry_out`` plans units of work, works on each unit
in an executor, and commits the results. If another commit has changed some of the units meanwhile,
the loop pauses and plans them again. The loop ends after ``Steps.attempts`` conflicts in a row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from threading import Event
from typing import Generic, TypeVar

from lakeformat.environment import Environment
from lakeformat.errors import (
    CommitConflictError,
    CorruptTableError,
    LakeError,
    NotFoundError,
)
from lakeformat.executor import Executor, outcomes_of
from lakeformat.types.count_text import counted

__all__ = ["ATTEMPTS", "Ended", "Round", "Steps", "carry_out"]

_log = logging.getLogger(__name__)
U = TypeVar("U")
R = TypeVar("R")

ATTEMPTS = 10
"""The number of conflicts in a row after which an operation stops."""
_LEAST_PAUSE_MILLIS = 10
_LONGEST_PAUSE_MILLIS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Round(Generic[U, R]):
    """One plan: the units of work for one state of the table, and the function that works on a
    unit.
    """

    units: Sequence[U]
    work: Callable[[U], R]
    """Works on one unit, in any process, without a commit. Returns the result, which is never
    None.
    """
    stop: Event = field(default_factory=Event)
    """Set when the round ends early: then running units should stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Generic[U, R]):
    """The functions and limits of one operation.

    The functions ``take`` and ``finish`` make commits. If a commit is refused, they delete the
    files of that commit and raise its ``LakeError``. After a conflict, ``carry_out`` still calls
    ``take`` for the remaining results.
    """

    name: str
    """The name of the operation and its table, for logs and errors."""
    head: Callable[[], object]
    """Returns a value that identifies the newest state of the table, such as a snapshot number."""
    plan: Callable[[], Round[U, R] | None]
    """Reads the newest state and returns the units to work on; None if no unit needs work."""
    take: Callable[[R], object]
    """Receives one result, and commits when it has enough results."""
    finish: Callable[[], bool | None] = lambda: None
    """Commits the remaining results of a round. True makes ``carry_out`` plan another round."""
    give_up: Callable[[], object] = lambda: None
    """Deletes the files of all results that are not committed."""
    discard: Callable[[R], object] = lambda _: None
    """Deletes the files of one result that ``take`` did not receive."""
    environment: Environment
    executor: str | Executor = "serial"
    at_a_time: int | None = None
    """The number of units that run in parallel in threads; default: the number of cores plus
    one.
    """
    attempts: int = ATTEMPTS
    """The number of conflicts in a row after which the operation stops."""
    rounds: int | None = None
    """The largest number of rounds; None for no limit."""
    must_finish: bool = True
    """The behaviour after too many conflicts. True raises ``CommitConflictError``; False makes
    ``carry_out`` return ``Ended.CONFLICTS``.
    """


class Ended(Enum):
    """The reason why ``carry_out`` returned: no unit needs work, there were too many conflicts, or
    ``Steps.rounds`` was reached.
    """

    DONE = auto()
    CONFLICTS = auto()
    ROUNDS = auto()


def carry_out(steps: Steps[U, R]) -> Ended:
    """Plan, run and commit until no unit needs work, or until ``Steps.rounds`` is reached.

    After a ``CommitConflictError`` the units are planned again, unless ``is_final`` of the error is
    True. A missing or damaged file counts as a conflict if the table has a newer state, because
    expiry may have deleted the file. After too many conflicts in a row ``CommitConflictError`` is
    raised, unless ``Steps.must_finish`` is False.

    After any other error the files of uncommitted results are deleted, and the error is raised. If
    the outcome of a commit is unknown, its files are kept.
    """
    conflicts = attempts = rounds = 0
    while True:
        round_ = _DriverRound(steps, steps.head())
        is_more_due = round_.run()
        if round_.conflict is None:
            if not is_more_due:
                return Ended.DONE
            conflicts = attempts = 0
        else:
            conflicts += 1
            attempts += round_.attempts
            if conflicts == steps.attempts:
                if steps.must_finish:
                    raise _too_many_conflicts(steps, attempts, round_.conflict) from round_.conflict
                return Ended.CONFLICTS
        rounds += 1
        if rounds == steps.rounds:
            return Ended.ROUNDS
        if round_.conflict is not None:
            _log.info("%s is planned again: %s", steps.name, round_.conflict)
            steps.environment.back_off(
                conflicts,
                least_millis=_LEAST_PAUSE_MILLIS,
                longest_millis=_LONGEST_PAUSE_MILLIS,
            )


@dataclass(slots=True)
class _DriverRound(Generic[U, R]):
    steps: Steps[U, R]
    head: object
    conflict: LakeError | None = None
    attempts: int = 0
    """The number of failed attempts to commit; a missing or damaged file counts as one attempt."""

    def run(self) -> bool:
        """Plan the units, run them and commit, and return True if more work is due.

        A conflict is stored in ``conflict``, and more work is then due.
        """
        try:
            planned = self.steps.plan()
            return planned is not None and self._run(planned)
        except LakeError as error:
            self._note(error)
            return True

    def _run(self, planned: Round[U, R]) -> bool:
        outcomes = _outcomes(self.steps, planned)
        try:
            for outcome in outcomes:
                if outcome is not None:
                    self._take(outcome)
            return bool(self.steps.finish())
        except BaseException:
            planned.stop.set()
            self.steps.give_up()
            with suppress(Exception):  # units that fail now do not replace the first error
                for outcome in outcomes:
                    if outcome is not None:
                        self.steps.discard(outcome)
            raise

    def _take(self, outcome: R) -> None:
        try:
            self.steps.take(outcome)
        except LakeError as error:
            self._note(error)

    def _note(self, error: LakeError) -> None:
        """Store the error if it is a conflict, so that the units are planned again; else raise it.

        A missing or damaged file counts as a conflict if the table has a newer state.
        """
        is_conflict = isinstance(error, CommitConflictError) and not error.is_final
        may_have_expired = isinstance(error, CorruptTableError | NotFoundError)
        if not is_conflict and not (may_have_expired and self.steps.head() != self.head):
            raise error
        self.conflict = error
        self.attempts += error.attempts if isinstance(error, CommitConflictError) else 1


def _outcomes(steps: Steps[U, R], planned: Round[U, R]) -> Iterator[R | None]:
    """Yield the result of each unit as soon as it is ready.

    The result of a unit that was skipped because of ``stop`` is None.
    """
    if not isinstance(steps.executor, str):
        return steps.executor.outcomes(planned.work, planned.units, planned.stop)

    def work(unit: U) -> R | None:
        return None if planned.stop.is_set() else planned.work(unit)

    def lost(outcome: R | None) -> None:
        if outcome is not None:
            steps.discard(outcome)

    return outcomes_of(
        steps.executor,
        work,
        planned.units,
        stop=planned.stop,
        lost=lost,
        at_a_time=steps.at_a_time,
    )


def _too_many_conflicts(steps: Steps[U, R], attempts: int, last: LakeError) -> CommitConflictError:
    error = CommitConflictError(
        f"{steps.name}: planned {steps.attempts} times in a row, but other commits came first in "
        f"all {counted(attempts, 'attempt')}. Retry when there are fewer commits. The last "
        f"conflict: {last}"
    )
    error.attempts = attempts
    return error
