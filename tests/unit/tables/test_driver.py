"""The loop of every operation: plan, run, commit, plan again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Event

import pytest

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.tables.driver import Ended, Round, Steps, carry_out
from lakeformat.tables.kept_files import kept_if_published


@dataclass
class Squares:
    """Publishes the square of each number that is due, in groups of two."""

    due: list[int]
    refusals: int = 0
    """The number of commits that another writer wins."""
    error: BaseException | None = None
    """Raised by the first commit that no other writer wins."""
    broken: int | None = None
    """A unit that cannot be worked on."""
    head: int = 1
    plans: int = 0
    worked: list[int] = field(default_factory=list)
    published: list[int] = field(default_factory=list)
    files: set[int] = field(default_factory=set)
    waits: list[float] = field(default_factory=list)
    _waiting: list[int] = field(default_factory=list)

    def steps(self, **limits) -> Steps[int, int]:
        environment = Environment(sleep_seconds=self.waits.append, random_fraction=lambda: 0.5)
        steps = Steps(
            name="squaring",
            head=lambda: self.head,
            plan=self.plan,
            take=self.take,
            finish=self.commit,
            give_up=self.give_up,
            discard=self.files.discard,
            environment=environment,
        )
        return replace(steps, **limits)

    def plan(self) -> Round[int, int] | None:
        self.plans += 1
        left = [number for number in self.due if number**2 not in self.published]
        return Round(units=left, work=self.work) if left else None

    def work(self, number: int) -> int:
        self.worked.append(number)
        if number == self.broken:
            raise lake.CorruptTableError(f"{number} is damaged")
        self.files.add(number**2)
        return number**2

    def take(self, square: int) -> None:
        self._waiting.append(square)
        if len(self._waiting) == 2:
            self.commit()

    def commit(self) -> None:
        group, self._waiting = self._waiting, []
        with kept_if_published(lambda: self.files.difference_update(group)):
            if self.refusals:
                self.refusals -= 1
                self.head += 1
                raise lake.CommitConflictError("another writer was first")
            if self.error is not None:
                raise self.error
            self.published += group

    def give_up(self) -> None:
        self.files.difference_update(self._waiting)
        self._waiting = []


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_every_unit_is_worked_on_and_published(executor):
    squares = Squares([1, 2, 3])
    assert carry_out(squares.steps(executor=executor)) is Ended.DONE
    assert sorted(squares.published) == [1, 4, 9]
    assert (squares.plans, squares.waits) == (1, [])


def test_nothing_is_committed_when_nothing_is_due():
    squares = Squares([])
    assert carry_out(squares.steps()) is Ended.DONE
    assert (squares.plans, squares.published) == (1, [])


def test_only_refused_units_are_planned_again_after_a_pause():
    squares = Squares([1, 2, 3, 4], refusals=1)
    assert carry_out(squares.steps()) is Ended.DONE
    assert squares.published == [9, 16, 1, 4]
    assert squares.plans == 2
    assert squares.waits == [pytest.approx(0.011)]
    assert squares.files == {1, 4, 9, 16}


def test_conflicts_without_end_are_raised_and_leave_no_file():
    squares = Squares([1], refusals=1_000)
    with pytest.raises(
        lake.CommitConflictError, match=r"squaring: .* 10 times in a row.* another writer was first"
    ):
        carry_out(squares.steps())
    assert (squares.plans, squares.files) == (10, set())
    assert squares.waits == sorted(squares.waits)
    assert max(squares.waits) == pytest.approx(0.55)


def test_an_operation_that_may_stay_unfinished_is_told_so():
    squares = Squares([1], refusals=1_000)
    assert carry_out(squares.steps(must_finish=False)) is Ended.CONFLICTS


def test_a_round_without_conflict_begins_the_count_anew():
    squares = Squares([1], refusals=9)
    conflicts = iter([9, 9, 0])

    def finish() -> bool:
        squares.commit()
        squares.published.clear()
        squares.refusals = next(conflicts)
        return squares.refusals > 0

    assert carry_out(squares.steps(finish=finish)) is Ended.DONE
    assert squares.plans == 30


def test_rounds_are_limited():
    squares = Squares([1])
    steps = squares.steps(finish=lambda: True, rounds=3, take=lambda _: None)
    assert carry_out(steps) is Ended.ROUNDS
    assert squares.plans == 3


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_a_unit_that_fails_ends_the_operation_and_leaves_no_file(executor):
    squares = Squares([1, 2, 3, 4, 5], broken=3)
    with pytest.raises(lake.CorruptTableError, match="3 is damaged"):
        carry_out(squares.steps(executor=executor))
    assert squares.files == set(squares.published)
    assert squares.plans == 1


def test_a_file_that_is_missing_after_another_commit_is_planned_again():
    squares = Squares([1, 2, 3], broken=3)

    def work(number: int) -> int:
        try:
            return squares.work(number)
        finally:
            if number == squares.broken:
                squares.head += 1
                squares.broken = None

    def plan() -> Round[int, int] | None:
        planned = squares.plan()
        return planned and replace(planned, work=work)

    assert carry_out(squares.steps(plan=plan)) is Ended.DONE
    assert squares.published == [1, 4, 9]
    assert squares.plans == 2


def test_files_stay_while_the_outcome_of_their_commit_is_unknown():
    unknown = lake.CommitOutcomeUnknownError("no answer")
    squares = Squares([1, 2, 3, 4, 5], error=unknown)
    with pytest.raises(lake.CommitOutcomeUnknownError):
        carry_out(squares.steps())
    assert squares.files == {1, 4}, "those of the first commit, and no others"
    assert squares.plans == 1


def test_an_interruption_stops_what_is_under_way_and_deletes_what_waits():
    squares = Squares([1, 2, 3])
    stop = Event()

    def interrupted(square: int) -> None:
        squares._waiting.append(square)
        raise KeyboardInterrupt

    def plan() -> Round[int, int]:
        return Round(units=[1, 2, 3], work=squares.work, stop=stop)

    with pytest.raises(KeyboardInterrupt):
        carry_out(squares.steps(plan=plan, take=interrupted))
    assert stop.is_set()
    assert squares.worked == [1], "units after the interruption are skipped"
    assert squares.files == set()


class Elsewhere:
    """Works on all units before anyone asks for the first result."""

    def outcomes(self, work, units, stop):
        yield from [work(unit) for unit in units]


def test_a_unit_that_is_cancelled_does_not_hide_why_the_operation_failed():
    squares = Squares([1, 2, 3], error=lake.UnavailableError("no answer"))
    given_up = Event()

    def work(number: int) -> int:
        if number == 3:
            assert given_up.wait(30)
            raise lake.LakeError("reading was cancelled")
        return squares.work(number)

    steps = squares.steps(
        executor="threads",
        plan=lambda: Round(units=squares.due, work=work),
        give_up=given_up.set,
    )
    with pytest.raises(lake.UnavailableError, match="no answer"):
        carry_out(steps)


def test_results_of_another_executor_are_discarded_once_the_operation_failed():
    squares = Squares([1, 2, 3, 4, 5], error=lake.UnavailableError("the store is away"))
    with pytest.raises(lake.UnavailableError):
        carry_out(squares.steps(executor=Elsewhere()))
    assert squares.files == set()


@pytest.mark.parametrize(
    ("error", "is_discarded"),
    [
        (lake.CommitConflictError(), True),
        (lake.UnavailableError(), True),
        (lake.CommitOutcomeUnknownError(), False),
        (KeyboardInterrupt(), False),
        (ZeroDivisionError(), False),
    ],
)
def test_files_are_deleted_only_if_they_were_certainly_not_published(error, is_discarded):
    discarded: list[bool] = []
    with pytest.raises(type(error)), kept_if_published(lambda: discarded.append(True)):
        raise error
    assert bool(discarded) is is_discarded
