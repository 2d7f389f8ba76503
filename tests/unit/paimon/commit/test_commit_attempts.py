"""The second attempt of a commit: what it takes over from the first, and what it looks at anew."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.errors import UnavailableError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import read_manifests
from lakeformat.paimon.metadata.manifest_list import manifests_of
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids
from lakeformat.storage import MemoryStorage
from tests.crash.references import metadata_files, referenced_metadata
from tests.paper import commit, file, head, live, message, paper_table, vectors, with_options

A, B, C, X, M = (file(name) for name in "abcxm")
MERGING = {"manifest.merge-min-count": "2"}
_names = itertools.count()


class Contended(MemoryStorage):
    """Before each of the next publications one of the rivals publishes."""

    def __init__(self) -> None:
        super().__init__(f"contended-{next(_names)}")
        self.rivals: list[Callable[[], object]] = []

    def create(self, path: str, content: bytes) -> bool:
        if "snapshot-" in path and self.rivals:
            waiting, self.rivals = self.rivals, []
            waiting[0]()
            self.rivals = waiting[1:]
        return super().create(path, content)


def contended(*, options: dict[str, str] | None = None, partitioned: bool = False) -> TableHandle:
    return paper_table(storage=Contended(), options=options, partitioned=partitioned)


def appends(handle: TableHandle, *names: str) -> list[Callable[[], object]]:
    """Rivals that add a file each, and never merge manifests."""
    plain = with_options(handle, {})
    return [lambda name=name: commit(plain, message(plain, file(name))) for name in names]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_overwrite_takes_out_what_came_in_before_each_of_its_attempts(times):
    orders = contended()
    commit(orders, message(orders, A))
    orders.storage.rivals = appends(orders, *(f"r{n}" for n in range(times)))
    report = commit(orders, message(orders, X), overwrite={})
    assert (report.attempts, live(orders)) == (times + 1, ["x"])
    assert head(orders).total_record_count == 10


def test_an_overwrite_takes_out_partitions_that_came_in_after_its_first_look():
    orders = contended(partitioned=True)
    commit(orders, message(orders, A, dt="1"))
    orders.storage.rivals = [lambda: commit(orders, message(orders, B, dt="2"))]
    commit(orders, message(orders, X, dt="3"), overwrite={})
    assert live(orders) == ["3/x"]


def test_a_conflict_has_the_number_of_its_attempts():
    orders = contended(options={"commit.max-retries": "2"})
    orders.storage.rivals = appends(orders, "r0", "r1", "r2")
    with pytest.raises(lake.CommitConflictError, match="in each of 3 attempts") as refused:
        commit(orders, message(orders, X))
    assert refused.value.attempts == 3


@pytest.mark.parametrize("times", [1, 2, 3])
def test_manifests_merged_in_the_first_attempt_serve_the_later_ones(times):
    orders = contended(options=MERGING)
    commit(orders, message(orders, A))
    commit(orders, message(orders, B))
    names = [f"r{n}" for n in range(times)]
    orders.storage.rivals = appends(orders, *names)

    assert commit(orders, message(orders, X)).attempts == times + 1

    assert live(orders) == ["a", "b", *names, "x"]
    merged, *of_rivals = manifests_of(orders.storage, orders.layout, head(orders))[:-1]
    assert read_manifests(orders.storage, orders.layout, [merged]).file_name.texts() == ["a", "b"]
    assert len(of_rivals) == times
    assert metadata_files(orders) == referenced_metadata(orders), "nothing is left of lost attempts"


class Unanswered(MemoryStorage):
    """The next publications are not done yet, and not answered; ``arrive`` does the first."""

    def __init__(self) -> None:
        super().__init__(f"unanswered-{next(_names)}")
        self.unanswered = 0
        self.under_way: tuple[str, bytes] | None = None

    def create(self, path: str, content: bytes) -> bool:
        if "snapshot-" in path and self.unanswered:
            self.unanswered -= 1
            self.under_way = self.under_way or (path, content)
            raise UnavailableError("no answer")
        return super().create(path, content)

    def arrive(self) -> None:
        assert self.under_way is not None
        assert super().create(*self.under_way)


def in_doubt(meanwhile: Callable[[TableHandle], object]) -> TableHandle:
    """A table whose next commit gets no answer, after which ``meanwhile`` happens."""
    orders = paper_table(storage=Unanswered(), options=MERGING)
    commit(orders, message(orders, A))
    commit(orders, message(orders, B))
    orders.storage.unanswered = 3  # one attempt
    pending = [meanwhile]

    def pause(seconds: float) -> None:
        if orders.storage.under_way is not None and pending:
            pending.pop()(orders)

    return replace(orders, environment=Environment(sleep_seconds=pause))


def appending(orders):
    return commit(orders, message(orders, X))


def overwriting(orders):
    return commit(orders, message(orders, X), overwrite={})


def compacting(orders):
    return commit(orders, message(orders, compact_before=[A, B], compact_after=[M]))


COMMITS = [appending, overwriting, compacting]


@pytest.mark.parametrize("act", COMMITS)
def test_an_attempt_that_arrives_late_finds_its_files(act):
    orders = in_doubt(lambda orders: None)
    create = orders.storage.create

    def arrives_first(path, content):
        if "snapshot-3" in path and not orders.storage.unanswered:
            orders.storage.create = create
            orders.storage.arrive()
        return create(path, content)

    orders.storage.create = arrives_first
    report = act(orders)
    assert (report.snapshot_id, report.attempts, head(orders).id) == (3, 3, 3)
    assert live(orders) == {appending: ["a", "b", "x"], overwriting: ["x"], compacting: ["m"]}[act]


@pytest.mark.parametrize("act", COMMITS)
def test_files_of_an_attempt_in_doubt_stay_although_a_rival_took_its_number(act):
    """Numbers are free again once they have expired: the publication may still arrive then."""
    orders = in_doubt(lambda orders: commit(orders, message(orders, C)))

    assert act(orders).snapshot_id == 4

    path, content = orders.storage.under_way
    orders.storage.overwrite(path, content)
    assert referenced_metadata(orders, [3]) <= metadata_files(orders)
    assert (
        live(orders, 3)
        == {
            appending: ["a", "b", "x"],
            overwriting: ["x"],
            compacting: ["m"],
        }[act]
    )


def test_pauses_between_attempts_double_up_to_the_longest():
    orders = contended(options={"commit.min-retry-wait": "10 ms", "commit.max-retry-wait": "30 ms"})
    orders.storage.rivals = appends(orders, *"pqrs")
    pauses: list[float] = []
    patient = Environment(sleep_seconds=pauses.append, random_fraction=lambda: 0.0)
    commit(replace(orders, environment=patient), message(orders, X))
    assert pauses == [0.01, 0.02, 0.03, 0.03]


def test_a_commit_points_the_hint_at_its_snapshot():
    orders = contended()
    for number, name in enumerate("abc", start=1):
        commit(orders, message(orders, file(name)))
        assert orders.storage.read(orders.layout.latest_hint) == str(number).encode()


def test_a_commit_after_a_loss_warns_that_the_lost_snapshot_must_not_be_restored(caplog):
    orders = contended()
    for name in "abc":
        commit(orders, message(orders, file(name)))
    orders.storage.delete(orders.layout.snapshot(3))
    commit(orders, message(orders, X))
    assert head(orders).id == 3
    assert "This commit takes the number 3. If it succeeds, do not restore" in caplog.text


def test_pinned_commits_look_at_what_came_in_between_their_attempts():
    orders = contended()
    commit(orders, message(orders, A))
    orders.storage.rivals = [
        lambda: commit(orders, message(orders, new_index_files=[vectors(orders, "v", "a")]))
    ]
    with pytest.raises(lake.CommitConflictError, match="computed from snapshot 1"):
        commit(orders, message(orders, X), overwrite={}, read_snapshot=1)


def roll_back_and_add(handle: TableHandle, *names: str) -> None:
    """Remove snapshot 2 from history, and publish new ones under its number and the next ones."""
    lake.Table(handle).rollback(snapshot=1, as_latest=False)
    for name in names:
        commit(handle, message(handle, file(name)))


@pytest.mark.parametrize("others", [("x",), ("x", "y"), ("x", "y", "z")])
def test_a_compaction_takes_no_file_out_that_a_rollback_has_taken_out_meanwhile(others):
    """The number of the last head is that of another snapshot by now."""
    orders = contended()
    commit(orders, message(orders, A))
    commit(orders, message(orders, B))
    orders.storage.rivals = [lambda: roll_back_and_add(orders, *others)]
    merged = message(orders, compact_before=[A, B], compact_after=[M])
    with pytest.raises(lake.CommitConflictError, match="not in the table any more"):
        commit(orders, merged)
    assert live(orders) == ["a", *others]


def test_a_twin_that_took_the_number_of_a_snapshot_rolled_back_is_found():
    orders = contended()
    commit(orders, message(orders, A))
    commit(orders, message(orders, B))

    def twin() -> None:
        lake.Table(orders).rollback(snapshot=1, as_latest=False)
        commit(orders, message(orders, X), user="run")

    orders.storage.rivals = [twin]
    assert commit(orders, message(orders, X), user="run").replayed
    assert live(orders) == ["a", "x"]


def test_a_message_committed_under_the_number_of_a_snapshot_rolled_back_is_refused():
    catalog = FileSystemCatalog(Contended(), "wh")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    for number in range(2):
        table.write(pa.table({"id": [number]}))
    with table.new_writer() as writer:
        writer.write(pa.table({"id": [2]}))
        messages = writer.prepare()

    def twin() -> None:
        table.rollback(snapshot=1, as_latest=False)
        table.commit([replace(each, base_snapshot=1) for each in messages])

    table._handle.storage.rivals = [twin]
    with pytest.raises(lake.InvalidRequestError, match=r"snapshot 2 .* already has the file"):
        table.commit(messages)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 2]


class Overtaken(MemoryStorage):
    """Once a commit has created ``snapshot-3``, ``meanwhile`` happens before its next call."""

    def __init__(self) -> None:
        super().__init__(f"overtaken-{next(_names)}")
        self.meanwhile: Callable[[], object] | None = None

    def create(self, path: str, content: bytes) -> bool:
        created = super().create(path, content)
        if path.endswith("/snapshot-3") and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return created


@pytest.mark.parametrize("others", [("x",), ("x", "y"), ("x", "y", "z")])
def test_a_publication_that_a_rollback_removed_deletes_no_snapshot_with_its_number(others):
    """Another writer's snapshot may have the number by now, and even snapshots after it."""
    orders = paper_table(storage=Overtaken())
    commit(orders, message(orders, A))
    commit(orders, message(orders, B))
    orders.storage.meanwhile = lambda: roll_back_and_add(orders, *others)

    report = commit(orders, message(orders, C))

    assert (report.attempts, report.snapshot_id) == (2, 2 + len(others))
    assert live(orders) == ["a", "c", *others]
    numbers = snapshot_ids(orders.storage, orders.layout)
    assert numbers == [*range(1, 3 + len(others))]
