"""Samples of what is exhaustive, picked by a seed; ``bin/test --all`` runs everything.

Each run draws a new seed and prints it at its end. ``SEED=7 bin/test crash`` repeats the sample of
seed 7.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from random import Random
from typing import TypeVar

import pytest

from lakeformat.testing import Call, CrashableStorage, Scenario, Trial, every_fault

__all__ = [
    "IS_WHOLE",
    "SEED",
    "count",
    "sample",
    "sampled_calls",
    "sampled_fault_calls",
    "sampled_faults",
    "sampled_items",
    "sampled_moments",
    "sampled_states",
]

T = TypeVar("T")

# Kept in the environment, so that all processes of a run have the same seed.
os.environ["SEED"] = os.environ.get("SEED") or str(time.time_ns() % 1_000_000)
SEED = int(os.environ["SEED"])
IS_WHOLE = bool(os.environ.get("LAKE_TEST_ALL"))

_MOMENTS = 8
_READING = frozenset({"directory_exists", "exists", "list", "open_input", "read"})


def count(sampled: int, whole: int, name: str = "") -> int:
    """Return how many examples a test makes; the environment variable ``name`` decides first."""
    return int(os.environ.get(name) or (whole if IS_WHOLE else sampled))


def sample(
    items: Iterable[T],
    most: int,
    *,
    kind: Callable[[T], Hashable] = lambda item: None,
    ends: bool = True,
    of: str = "",
) -> list[T]:
    """Return the first item and the last (``ends``), one of each kind, and random ones.

    They keep their order. More than ``most`` are returned only if there are that many kinds. Each
    test has a sample of its own; ``of`` names what is sampled outside of a test.
    """
    whole = list(items)
    if IS_WHOLE or len(whole) <= most:
        return whole
    chosen = {0, len(whole) - 1} if ends else set()
    kinds = {kind(whole[number]) for number in chosen}
    order = _chance(of).sample(range(len(whole)), len(whole))
    for number in order:
        if kind(whole[number]) not in kinds:
            kinds.add(kind(whole[number]))
            chosen.add(number)
    others = [number for number in order if number not in chosen]
    chosen.update(others[: max(0, most - len(chosen))])
    return [whole[number] for number in sorted(chosen)]


def sampled_items(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the tests without those that ``@pytest.mark.sampled(most)`` leaves out of a run.

    The cases of one test are one table. With ``among="name"`` it is all tests of the run that have
    this name in their mark. Tests with the same ``story="name"`` count as one, because they share a
    costly fixture: a run has all of them or none.
    """
    whole = list(items)
    cases: dict[tuple[str, int], dict[str, list[pytest.Item]]] = {}
    for item in whole:
        if (mark := item.get_closest_marker("sampled")) is not None:
            table = mark.kwargs.get("among") or item.nodeid.partition("[")[0]
            stories = cases.setdefault((table, mark.args[0]), {})
            stories.setdefault(mark.kwargs.get("story") or item.nodeid, []).append(item)
    left_out: set[pytest.Item] = set()
    for (name, most), stories in cases.items():
        for story in set(stories).difference(sample(stories, most, ends=False, of=name)):
            left_out |= set(stories[story])
    return [item for item in whole if item not in left_out]


def sampled_faults(
    scenario: Scenario[T],
    *,
    start: CrashableStorage | None = None,
    seed: int = SEED,
    most: int | None = None,
) -> list[Trial[T]]:
    """Return some of the faults of ``every_fault``, with one of each kind of storage call.

    Calls that only read are one kind for each operation: after a fault at one of them the storage
    is as the last change left it. Long scenarios have many kinds: with ``most`` a run takes that
    many faults of any kinds.
    """
    trials = every_fault(scenario, start=start, seed=seed)
    if most is not None:
        return sample(trials, most)
    return sample(
        trials,
        _MOMENTS,
        kind=lambda trial: _kind_of_fault(trial.call.operation, trial.call.path),
    )


def sampled_fault_calls(log: Iterable[Call]) -> list[Call]:
    """Return some of the storage calls for faults, with one of each kind as in sampled_faults."""
    return sample(log, _MOMENTS, kind=lambda call: _kind_of_fault(call.operation, call.path))


def sampled_calls(log: Iterable[Call]) -> list[Call]:
    """Return some of these storage calls, with one of each kind."""
    return sample(log, _MOMENTS, kind=lambda call: _kind_of_call(call.operation, call.path))


def sampled_moments(calls: Iterable[tuple[str, str]], most: int | None = None) -> list[int]:
    """Return the numbers, from 1, of some storage calls: operations and paths, one of each kind.

    With ``most`` it is that many calls of any kinds.
    """
    if most is not None:
        return sample(range(1, 1 + len([*calls])), most)
    moments = sample(enumerate(calls, 1), _MOMENTS, kind=lambda call: _kind_of_call(*call[1]))
    return [number for number, _ in moments]


def sampled_states(
    scenario: Scenario[T], *, start: CrashableStorage, seed: int = SEED, most: int | None = None
) -> Iterator[Trial[T]]:
    """Run the scenario into sampled faults; of the trials that left the same, yield the first.

    Many faults leave the same bytes, as all reads between two writes do, and what a test checks
    follows from the disk and from what was acknowledged. Not for checks that look at times: a disk
    is compared by its files, directories and their bytes.
    """
    seen = set()
    for trial in sampled_faults(scenario, start=start, seed=seed, most=most):
        disk = trial.run().reopened()
        directories = (frozenset(disk._disk._made), frozenset(disk._disk._gone))
        state = (frozenset(disk.files().items()), directories, repr(trial.acknowledged))
        if (left := hash(state)) not in seen:
            seen.add(left)
            yield trial


def _kind_of_fault(operation: str, path: str) -> Hashable:
    return operation if operation in _READING else _kind_of_call(operation, path)


def _kind_of_call(operation: str, path: str) -> Hashable:
    """Return the operation, and the kind of file: the letters that its name begins with."""
    return operation, path.rpartition("/")[2].partition("-")[0].strip("0123456789")


def _chance(of: str) -> Random:
    """Return chance that another test does not share."""
    test = of or os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    return Random(f"{SEED}:{test}")
