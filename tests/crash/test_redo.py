"""A run that is done again dies at every storage call, and meets other commits at any of them.

Its rows are there once, or those of its first run are.
"""

from __future__ import annotations

import itertools
from contextlib import suppress

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.table import load_table
from lakeformat.storage import MemoryStorage
from lakeformat.testing import CrashableStorage
from tests.crash.interrupted import Interrupted
from tests.crash.simulated import simulated
from tests.sampling import sampled_moments, sampled_states

LAYOUT = TableLayout("wh/shop.db/orders")
FIRST, AGAIN = lake.CommitId("run", 1), lake.CommitId("run", 2, replaces=2)
OTHERS, FIRST_ROWS, NEW_ROWS = [0], [1, 2], [1, 3]
_names = itertools.count()


def opened(storage) -> lake.Table:
    return load_table(storage, LAYOUT, simulated(next(_names) + 100))


def fill(storage):
    """The row of another run and day, then the rows of the first run, each in a file."""
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("day", "BIGINT")]
    table = catalog.create_table("shop.orders", columns, partition_by=["day"])
    table.write(rows(OTHERS))
    messages = []
    for number in FIRST_ROWS:
        with table.new_writer() as writer:
            writer.write(rows([number]))
            messages += writer.prepare()
    table.commit(messages, commit=FIRST)
    return storage


def rows(ids) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "day": [min(each, 1) for each in ids]})


def content(storage) -> list[int]:
    return sorted(opened(storage).scan().to_arrow()["id"].to_pylist())


def redo(storage, acknowledged=None) -> None:
    table = load_table(storage, LAYOUT, simulated(len(storage.files())))
    report = table.write(rows(NEW_ROWS), commit=AGAIN)
    if acknowledged is not None:
        acknowledged.append(report.snapshot_id)


def test_a_fault_at_any_storage_call_leaves_one_run_and_the_next_try_ends_it():
    before, after = sorted(OTHERS + FIRST_ROWS), sorted(OTHERS + NEW_ROWS)
    for trial in sampled_states(redo, start=fill(CrashableStorage())):
        storage = trial.reopened()
        assert content(storage) in (before, after), str(trial)
        assert not trial.acknowledged or content(storage) == after, str(trial)
        redo(storage)
        assert content(storage) == after, f"in {trial}\n{trial.storage.trace()}"
        assert len(opened(storage).snapshots()) == 3, str(trial)


def insert(storage) -> None:
    opened(storage).write(rows([7]))


def compact(storage) -> None:
    insert(storage)
    opened(storage).compact(executor="serial", strategy="full")


def compact_only(storage) -> None:
    """The day of the first run holds no other rows, so its new file can be replaced too."""
    opened(storage).compact(executor="serial", strategy="full")


def delete_one(storage) -> None:
    opened(storage).delete("id = 2")


def truncate(storage) -> None:
    opened(storage).truncate()


def roll_back(storage) -> None:
    with suppress(lake.LakeError):  # the newest snapshot may be a newer one now
        opened(storage).rollback(snapshot=1)


def come_late(storage) -> None:
    """A process of the first run that outlived its task, after a rollback of its rows."""
    roll_back(storage)
    with suppress(lake.InvalidRequestError):  # the repetition has committed already
        opened(storage).write(rows(FIRST_ROWS), commit=FIRST)


def same(storage) -> None:
    """Another try of the repetition."""
    opened(storage).write(rows(NEW_ROWS), commit=AGAIN)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "rival",
    [insert, compact, compact_only, delete_one, truncate, roll_back, come_late, same],
)
def test_a_rival_at_any_moment_doubles_no_row(rival):
    allowed = outcomes(rival)
    watched = Interrupted(new_storage(), 0, lambda: None)
    redo(watched)
    for moment in sampled_moments(watched.calls):
        storage = new_storage()
        interrupted = Interrupted(storage, moment, lambda storage=storage: rival(storage))
        refused = None
        try:
            redo(interrupted)
        except lake.InvalidRequestError as reason:
            refused = reason
        assert interrupted.happened
        assert (content(storage), refused is None) in allowed, (moment, refused)


def outcomes(rival) -> list[tuple[list[int], bool]]:
    """The rows of both orders, and if the repetition published them."""
    found = []
    for first, second in ((redo, rival), (rival, redo)):
        storage, is_done = new_storage(), True
        first(storage)
        try:
            second(storage)
        except lake.InvalidRequestError:
            is_done = second is not redo
        found.append((content(storage), is_done))
    return found


def new_storage() -> MemoryStorage:
    return fill(MemoryStorage(f"redo-{next(_names)}"))
