"""Both stores of a Mixed table are created, dropped, cloned and renamed as one, also if the process
dies at any storage call: a repeated call completes it, and no file of a neighbour is touched."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg import IcebergCatalog
from lakeformat.testing import CrashableStorage
from tests.crash.mixed_catalogs import COLUMNS, SqlWarehouse, Warehouse, rows

ROWS = {1: "a", 2: "c", 3: "d"}
NEIGHBOURS = ["tt", "u"]
"""A plain table and a Mixed table, whose names begin with the same letters or not."""
PAIR = ["u", "u_change_"]
BESIDE = ("wh/db/tt/", "wh/db/u/", "wh/db/u_change_/")
SAMPLED = pytest.mark.sampled(1, among="pairs of stores")
KINDS = pytest.mark.parametrize("kind", ["path", "sql"])


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Each run makes its calls in one order."""
    monkeypatch.setattr("lakeformat.tables.parallel._PER_PROCESSOR", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.setattr(
        "lakeformat.mixed.batch.lease.Lease.keep_renewing", lambda self: None
    )  # a thread


@pytest.fixture
def warehouse(kind: str, tmp_path) -> Warehouse:
    """Neighbours, and the Mixed table ``t`` with rows in both stores."""
    made = SqlWarehouse(tmp_path) if kind == "sql" else Warehouse()
    catalog = made.catalog(made.start)
    catalog.create_database("db")
    catalog.create_table("db.tt", COLUMNS).write(rows(_1="n"))
    create(catalog, "db.u").write(rows(_1="n"))
    catalog = made.catalog(made.start)
    table = create(catalog, "db.t")
    table.write(rows(_1="a", _2="b"))
    table.compact(strategy="full", executor="serial")
    table.write(rows(_2="c", _3="d"))
    if isinstance(made, SqlWarehouse):
        made.keep()
    return made


def create(catalog: IcebergCatalog, name: str, *, exist_ok: bool = False) -> lake.MixedTable:
    made = catalog.create_table(
        name,
        COLUMNS,
        format="mixed",
        primary_key=["id"],
        options={"change.file-index.hash-bucket": "2", "base.file-index.hash-bucket": "1"},
        exist_ok=exist_ok,
    )
    assert isinstance(made, lake.MixedTable)
    return made


def stored(catalog: IcebergCatalog, name: str) -> dict[int, str]:
    table = catalog.table(name)
    assert isinstance(table, lake.MixedTable)
    found = table.scan().to_arrow().to_pydict()
    assert len({*found["id"]}) == len(found["id"])
    return dict(zip(found["id"], found["v"], strict=True))


def read_or_refused(catalog: IcebergCatalog, name: str) -> dict[int, str] | None:
    """Return the rows; None if the table is not there, or is refused as half a pair."""
    try:
        return stored(catalog, name)
    except (lake.NotFoundError, lake.CorruptTableError, lake.UnsupportedError):
        return None


def files_in(storage: CrashableStorage, *directories: str) -> dict[str, bytes]:
    return {
        path: content
        for path, content in storage.files("wh/db").items()
        if path.startswith(directories)
    }


def run_checked(
    warehouse: Warehouse,
    act: Callable[[IcebergCatalog], object],
    check: Callable[[IcebergCatalog, CrashableStorage, bool], None],
    *,
    beside: tuple[str, ...] = BESIDE,
) -> None:
    """Let a call die at storage calls, and check what is left; the neighbours are never touched."""
    kept = files_in(warehouse.start, *beside)
    assert kept
    for trial in warehouse.trials(act):
        storage = trial.reopened()
        try:
            assert files_in(storage, *beside) == kept
            check(warehouse.catalog(storage), storage, bool(trial.acknowledged))
            assert files_in(storage, *beside) == kept
            assert stored(warehouse.catalog(storage), "db.u") == {1: "n"}
        except (AssertionError, lake.LakeError) as error:
            error.add_note(f"after {trial}\n{trial.storage.trace()}")
            raise


@SAMPLED
@KINDS
def test_a_creation_that_dies_is_completed_by_a_repeated_call_or_dropped(kind, warehouse):
    def check(catalog: IcebergCatalog, storage: CrashableStorage, acknowledged: bool) -> None:
        listed = [each for each in catalog.list_tables("db") if each.startswith("new")]
        assert listed in ([], ["new_change_"], ["new"])
        assert listed == ["new"] or not acknowledged
        assert read_or_refused(catalog, "db.new") == ({} if listed == ["new"] else None)
        if listed == ["new_change_"]:
            with pytest.raises(lake.NotFoundError, match="complete the table with create_table"):
                catalog.table("db.new")
            if kind == "path":
                other = storage.reopened()
                warehouse.catalog(other).drop_table("db.new_change_", purge=True)
                assert warehouse.catalog(other).list_tables("db") == ["t", *NEIGHBOURS]
                assert files_in(other, "wh/db/new_change_/") == {}
        create(catalog, "db.new", exist_ok=True).write(rows(_7="x"))
        again = warehouse.catalog(storage)
        assert again.list_tables("db") == ["new", "t", *NEIGHBOURS]
        assert stored(again, "db.new") == {7: "x"}

    run_checked(
        warehouse,
        lambda catalog: create(catalog, "db.new"),
        check,
        beside=(*BESIDE, "wh/db/t/", "wh/db/t_change_/"),
    )


@SAMPLED
@KINDS
def test_a_drop_that_dies_shows_no_wrong_rows_and_repeated_ones_remove_both_stores(kind, warehouse):
    def check(catalog: IcebergCatalog, storage: CrashableStorage, acknowledged: bool) -> None:
        listed = [each for each in catalog.list_tables("db") if each not in NEIGHBOURS]
        assert listed in (["t"], ["t_change_"], [])
        assert not (acknowledged and listed)
        assert read_or_refused(catalog, "db.t") in (ROWS if listed == ["t"] else None, None)
        for name in ("db.t", "db.t_change_"):
            with suppress(lake.NotFoundError):
                warehouse.catalog(storage).drop_table(name, purge=True)
        assert warehouse.catalog(storage).list_tables("db") == NEIGHBOURS
        if kind == "path":
            assert files_in(storage, "wh/db/t/", "wh/db/t_change_/") == {}
        create(warehouse.catalog(storage), "db.t").write(rows(_7="x"))
        assert stored(warehouse.catalog(storage), "db.t") == {7: "x"}

    run_checked(warehouse, lambda catalog: catalog.drop_table("db.t", purge=True), check)


@SAMPLED
@KINDS
def test_a_clone_that_dies_shows_no_rows_and_a_repeated_one_completes_it(kind, warehouse):
    def clone(catalog: IcebergCatalog) -> None:
        lake.clone_table(catalog.table("db.t"), catalog, "db.copy")

    def check(catalog: IcebergCatalog, storage: CrashableStorage, acknowledged: bool) -> None:
        found = read_or_refused(catalog, "db.copy")
        assert found == ROWS or (found is None and not acknowledged)
        with suppress(lake.AlreadyExistsError):  # it was complete
            clone(catalog)
        again = warehouse.catalog(storage)
        assert stored(again, "db.copy") == ROWS
        assert again.list_tables("db") == ["copy", "t", *NEIGHBOURS]
        create(again, "db.new", exist_ok=True)  # no batch or lease of the clone is in the way
        again.table("db.copy").write(rows(_7="x"))
        assert stored(again, "db.copy") == {**ROWS, 7: "x"}
        assert stored(again, "db.t") == ROWS

    source = ("wh/db/t/metadata/", "wh/db/t/data/", "wh/db/t_change_/")
    run_checked(warehouse, clone, check, beside=(*BESIDE, *source))


@SAMPLED
@pytest.mark.parametrize("kind", ["sql"])
def test_a_rename_that_dies_loses_no_row_and_a_repeated_one_completes_it(kind, warehouse):
    def rename(catalog: IcebergCatalog) -> None:
        catalog.rename_table("db.t", "db.new")

    data = {path for path in files_in(warehouse.start, "wh/db/t") if path.endswith(".parquet")}
    assert data

    def check(catalog: IcebergCatalog, storage: CrashableStorage, acknowledged: bool) -> None:
        tables = catalog._metastore.tables("db")
        old, new = (read_or_refused(catalog, f"db.{name}") for name in ("t", "new"))
        assert (old, new) in ((ROWS, None), (None, ROWS), (None, None))
        if (old, new) == (None, None):
            with pytest.raises(lake.CorruptTableError, match=r"interrupted rename to 'db.new'"):
                catalog.table("db.t")
        assert new == ROWS or not acknowledged
        if "t" in tables:
            rename(warehouse.catalog(storage))
        again = warehouse.catalog(storage)
        assert sorted(again._metastore.tables("db")) == ["new", "new_change_", "tt", *PAIR]
        assert stored(again, "db.new") == ROWS
        assert data <= {*storage.files("wh/db")}
        again.table("db.new").write(rows(_7="x"))
        assert stored(warehouse.catalog(storage), "db.new") == {**ROWS, 7: "x"}

    run_checked(warehouse, rename, check)
