"""Published tables are entries of catalogs, in which PyIceberg reads their rows."""

from __future__ import annotations

from contextlib import contextmanager, suppress

import pytest

import lakeformat as lake
from lakeformat.catalog import filesystem
from lakeformat.catalog.iceberg.rest import RestMetastore
from lakeformat.errors import UnavailableError
from lakeformat.publish import IcebergPublication
from lakeformat.publish.targets import withdraw
from lakeformat.publish.versions import PublishedVersions
from lakeformat.storage import LocalStorage
from spark_jobs import publish
from tests.sampling import sample
from tests.unit.publish.catalogs import COLUMNS, KINDS, Published, opened
from tests.unit.publish.published import content, rows_of, seen, unobserved


@pytest.fixture(params=KINDS)
def published(request, tmp_path):
    with opened(request.param, tmp_path) as found:
        yield found


def write(table: lake.Table, *numbers: int) -> None:
    for number in numbers:
        table.write(rows_of(id=[number], note=[f"n{number}"]))


def ids(rows) -> list[int]:
    return [row["id"] for row in rows]


def test_readers_of_the_catalog_see_the_rows_of_each_operation(published: Published):
    table = published.table()
    write(table, 1, 2)
    assert published.read() == content(table.scan().to_arrow())
    table = published.catalog().alter_table("shop.orders", lake.add_column("more", "INT"))
    write(table, 3)
    table.compact(strategy="full")
    table.tags.create("kept", snapshot=2)
    assert published.read() == content(table.scan().to_arrow())
    assert ids(published.read(snapshot=2)) == [1, 2]
    table.expire_snapshots(retain_max=1, retain_min=1)
    loaded = published.service.client().load_table("shop.orders")
    assert {each.snapshot_id for each in loaded.metadata.snapshots} == {2, 4}
    assert loaded.metadata.refs["kept"].snapshot_id == 2
    assert published.read() == content(table.scan().to_arrow())
    assert table.health().reasons == ()


def test_the_entry_names_another_file_after_each_change_of_tags_and_snapshots(
    published: Published,
):
    """Clients that remember the name of a file do not read a changed file of that name."""
    table, named = published.table(), []

    def look() -> None:
        named.append(published.service.client().load_table("shop.orders").metadata_location)

    write(table, 1, 2)
    look()
    table.tags.create("kept", snapshot=2)
    look()
    table.expire_snapshots(retain_max=1, retain_min=1)
    look()
    table.tags.delete("kept")
    look()
    assert len(set(named)) == 4


def test_a_rollback_and_reused_numbers_follow(published: Published):
    table = published.table()
    write(table, 1, 2, 3)
    table.rollback(snapshot=1, as_latest=False)
    assert ids(published.read()) == [1]
    write(table, 8, 9)
    assert ids(published.read()) == [1, 8, 9]
    assert ids(published.read(snapshot=2)) == [1, 8]
    assert table.health().reasons == ()


def test_commits_of_other_engines_are_published_later(published: Published):
    table = published.table()
    write(table, 1)
    write(unobserved(table), 2, 3)
    assert ids(published.read()) == [1]
    report = lake.publish_table(table)
    assert report.published == (2, 3)
    [moved] = report.catalogs
    assert moved.startswith("table 'shop.orders' in ")
    assert ids(published.read()) == [1, 2, 3]
    assert lake.publish_table(table).catalogs == ()


def test_a_branch_does_not_change_the_entry_of_its_table(published: Published):
    table = published.table()
    write(table, 1)
    table.branches.create("dev", snapshot=1)
    dev = published.catalog().table("shop.orders$branch_dev")
    write(dev, 2)
    assert (ids(published.read()), published.names()) == ([1], ["orders"])
    assert (dev.health().reasons, table.health().reasons) == ((), ())
    assert ids(seen(dev)) == [1, 2]


def test_another_table_of_that_name_is_refused_and_another_name_helps(published: Published):
    other = published.table()
    write(other, 7)
    catalog = published.catalog()
    catalog.create_database("copy")
    options = {**published.service.options, "metadata.iceberg.database": "shop"}
    options["metadata.iceberg.table"] = "orders"
    table = catalog.create_table(
        "copy.orders", [("id", "BIGINT"), ("note", "STRING")], options=options
    )
    write(table, 1)
    assert ids(published.read()) == [7]
    [reason] = table.health().reasons
    assert "is another table" in reason.finding
    assert reason.advice.startswith("publish under another name with the options 'metadata.iceb")
    with pytest.raises(lake.AlreadyExistsError, match=r"'metadata\.iceberg\.table'"):
        lake.publish_table(table)
    table = catalog.alter_table("copy.orders", lake.set_option("metadata.iceberg.table", "more"))
    lake.publish_table(table)
    assert table.health().reasons == ()
    assert ids(published.read("shop.more")) == [1]
    assert ids(published.read()) == [7]


def test_several_databases_get_an_entry(published: Published):
    table = published.table(**{"metadata.iceberg.database": "one; two"})
    write(table, 1)
    assert [ids(published.read(f"{each}.orders")) for each in ("one", "two")] == [[1], [1]]


def test_a_slow_publication_never_moves_the_catalog_back(published: Published, monkeypatch):
    """Another publication is first between the look at the catalog and its change."""
    table = published.table()
    write(table, 1)
    newest, slow = PublishedVersions.newest, []

    def looks_slowly(versions):
        found = newest(versions)
        if slow and found is not None and found.metadata.current_snapshot_id == 2:
            slow.clear()
            write(published.catalog().table("shop.orders"), 3)
        return found

    monkeypatch.setattr(PublishedVersions, "newest", looks_slowly)
    slow.append(True)
    write(table, 2)
    assert slow == []
    assert ids(published.read()) == [1, 2, 3]


@pytest.mark.parametrize(
    ("replaces", "change"), [(True, "register"), (False, "remove_table"), (False, "register")]
)
@pytest.mark.parametrize("published", ["rest"], indirect=True)
def test_a_slow_replacement_of_the_entry_is_corrected(
    published: Published, monkeypatch, replaces, change
):
    """No updates lead to a reused number, so the service replaces its table without a condition."""
    published.service.server.replaces = replaces
    table = published.table()
    write(table, 1, 2, 3)
    table.rollback(snapshot=1, as_latest=False, force=True)
    call, slow = getattr(RestMetastore, change), [True]

    def called_late(*args, **settings):
        if slow:
            slow.clear()
            theirs = published.catalog().table("shop.orders")
            theirs.write(rows_of(id=[9], note=["n9"]), overwrite="table")
            theirs.expire_snapshots(retain_max=1, retain_min=1)
        return call(*args, **settings)

    monkeypatch.setattr(RestMetastore, change, called_late)
    write(table, 8)
    assert slow == []
    assert ids(published.read()) == [9]
    assert table.health().reasons == ()


@pytest.mark.parametrize(("replaces", "requests"), [(True, 1), (False, 2)])
@pytest.mark.parametrize("published", ["rest"], indirect=True)
def test_an_entry_is_replaced_once_and_reported(
    published: Published, monkeypatch, replaces, requests
):
    published.service.server.replaces = replaces
    table = published.table()
    write(table, 1, 2)
    theirs = unobserved(table)
    theirs.rollback(snapshot=1, as_latest=False, force=True)
    write(theirs, 8)
    register, made = RestMetastore.register, []

    def counted(*args, **settings):
        made.append(settings)
        return register(*args, **settings)

    monkeypatch.setattr(RestMetastore, "register", counted)
    [moved] = lake.publish_table(table).catalogs
    assert moved.startswith("table 'shop.orders' in ")
    assert len(made) == requests
    assert ids(published.read()) == [1, 8]


def test_a_catalog_that_does_not_answer_costs_no_commit_and_is_made_up_for(
    published: Published, monkeypatch, caplog
):
    table = published.table()
    write(table, 1)
    with monkeypatch.context() as broken:
        published.fail(broken)
        write(published.catalog().table("shop.orders"), 2, 3)
        [reason] = published.catalog().table("shop.orders").health().reasons
        with pytest.raises(lake.LakeError, match="away"):
            published.catalog().table("shop.orders").expire_snapshots(retain_max=1, retain_min=1)
    assert "run `lake publish shop.orders`" in caplog.text
    assert "could not be checked" in reason.finding
    assert ids(published.read()) == [1]
    [reason] = table.health().reasons
    assert "shows an earlier state" in reason.finding
    assert reason.advice == "lake publish shop.orders"
    assert lake.publish_table(table).published == ()
    assert ids(published.read()) == [1, 2, 3]


def test_a_job_that_only_moves_the_entry_is_not_skipped(tmp_path, monkeypatch):
    with opened("sql", tmp_path) as published:
        table = published.table()
        with monkeypatch.context() as broken:
            published.fail(broken)
            write(published.catalog().table("shop.orders"), 1)
        request = {
            "warehouse": str(tmp_path / "wh"),
            "table": "shop.orders",
            "catalog_options": published.service.connection,
        }
        assert not publish.run(request)["skipped"]
        assert published.read() == content(table.scan().to_arrow())
        assert publish.run(request)["skipped"]
    assert table.health().reasons == ()


def test_a_dropped_table_leaves_no_entry_and_no_metadata(published: Published):
    table = published.table()
    write(table, 1)
    catalog = published.catalog()
    [entry, *_] = catalog.plan_drop_table("shop.orders").published
    assert entry.startswith("table 'shop.orders' in ")
    assert published.names() == ["orders"]
    catalog.drop_table("shop.orders")
    assert published.names() == []
    assert not [*published.directory.rglob("*.metadata.json")]
    write(published.table(), 2)
    assert ids(published.read()) == [2]


@pytest.mark.parametrize("published", ["sql"], indirect=True)
def test_a_publication_without_a_connection_names_why_the_entries_remain(published: Published):
    table = published.table()
    write(table, 1)
    withdrawal = IcebergPublication().withdrawal(table._handle)
    assert "is not removed: " in withdrawal.kept
    assert "open it with open_table or a catalog" in withdrawal.kept


@pytest.mark.parametrize("published", ["sql"], indirect=True)
def test_a_table_beside_metadata_of_another_program_is_dropped_with_a_warning(
    published: Published, caplog
):
    write(published.table(), 1)
    [file, *_] = published.directory.rglob("v*.metadata.json")
    file.with_name("v2147483647.metadata.json").write_text("{}")
    plan = published.catalog().plan_drop_table("shop.orders")
    assert "shop.db/orders is not removed: " in plan.kept
    published.catalog().drop_table("shop.orders")
    assert published.catalog().list_tables("shop") == []
    [warning] = [each.message for each in caplog.records]
    assert warning.startswith(f"{plan.kept}. The table was dropped or renamed nevertheless: ")


def test_the_entry_of_another_table_is_kept_when_one_is_dropped(published: Published):
    write(published.table(), 7)
    catalog = published.catalog()
    catalog.create_database("copy")
    options = {**published.service.options, "metadata.iceberg.database": "shop"}
    write(catalog.create_table("copy.orders", COLUMNS, options=options), 1)
    catalog.drop_table("copy.orders")
    assert ids(published.read()) == [7]


def test_a_renamed_table_has_an_entry_of_the_new_name_alone(published: Published):
    write(published.table(), 1)
    published.catalog().rename_table("shop.orders", "shop.sales")
    assert published.names() == ["sales"]
    assert ids(published.read("shop.sales")) == [1]
    write(published.catalog().table("shop.sales"), 2)
    assert ids(published.read("shop.sales")) == [1, 2]


def calls_after(monkeypatch, name: str, other) -> None:
    """Call ``other`` once, as another process, right after a function of the Paimon catalog."""
    call, waiting = getattr(filesystem, name), [True]

    def called(*args, **settings):
        call(*args, **settings)
        if waiting:
            waiting.clear()
            other()

    monkeypatch.setattr(filesystem, name, called)


@pytest.mark.parametrize("is_drop", [True, False])
def test_a_table_created_beside_a_drop_or_rename_keeps_its_entry(
    published: Published, monkeypatch, is_drop
):
    write(published.table(), 1, 2)
    catalog = published.catalog()
    change = "run_drop" if is_drop else "move_directory"
    calls_after(monkeypatch, change, lambda: write(published.table(), 5))
    if is_drop:
        catalog.drop_table("shop.orders")
    else:
        catalog.rename_table("shop.orders", "shop.sales")
        assert ids(published.read("shop.sales")) == [1, 2]
    assert ids(published.read()) == [5]
    table = catalog.table("shop.orders")
    write(table, 6)
    assert ids(published.read()) == [5, 6]
    assert table.health().reasons == ()


@pytest.mark.parametrize("published", ["rest", "hive"], indirect=True)
def test_a_new_table_without_metadata_keeps_no_entry_of_a_dropped_one(
    published: Published, monkeypatch
):
    write(published.table(), 1, 2)
    calls_after(monkeypatch, "run_drop", published.table)
    published.catalog().drop_table("shop.orders")
    assert published.names() == []
    write(published.catalog().table("shop.orders"), 5)
    assert ids(published.read()) == [5]


@pytest.mark.parametrize("published", ["rest", "hive"], indirect=True)
def test_a_commit_right_before_a_drop_keeps_no_entry(published: Published, monkeypatch):
    table = published.table()
    write(table, 1)
    drop = filesystem.run_drop

    def dropped_late(*args):
        write(table, 2)
        drop(*args)

    monkeypatch.setattr(filesystem, "run_drop", dropped_late)
    published.catalog().drop_table("shop.orders")
    assert published.names() == []
    assert not [*published.directory.rglob("*.metadata.json")]


@pytest.mark.parametrize("published", ["rest"], indirect=True)
def test_an_entry_that_may_be_of_a_new_table_is_kept_with_a_warning(
    published: Published, monkeypatch, caplog
):
    write(published.table(), 1)

    def away(*_):
        raise UnavailableError("the storage is away")

    monkeypatch.setattr(withdraw, "table_exists", away)
    published.catalog().drop_table("shop.orders")
    assert published.names() == ["orders"]
    assert "shop.db/orders is not removed: the storage is away. The table was dropped" in (
        caplog.text
    )


def test_a_removal_of_orphans_keeps_the_files_of_the_catalog(published: Published):
    table = published.table()
    write(table, 1, 2)
    table.remove_orphans("0 s", dry_run=False, allow_younger=True, max_share=1)
    assert ids(published.read()) == [1, 2]
    write(table, 3)
    assert ids(published.read()) == [1, 2, 3]


def test_readers_see_the_old_or_the_new_state_if_a_call_fails(published: Published, monkeypatch):
    """Any change of a file or of the catalog may fail; the next publication mends it."""
    table = published.table()
    write(table, 1, 2, 3)
    theirs = unobserved(table)

    def publish(number: int, fails: int | None) -> Fault:
        theirs.rollback(snapshot=1, as_latest=False, force=True)
        write(theirs, 9 + number)
        theirs.tags.create(f"kept{number}")
        with (
            monkeypatch.context() as broken,
            fails_at(broken, published, fails) as fault,
            suppress(UnavailableError),
        ):
            lake.publish_table(published.catalog().table("shop.orders"))
        return fault

    calls = publish(0, None).calls
    assert calls > 6
    failing = sample(range(1, calls + 1), 4)
    for number, call in enumerate(failing, 1):
        assert publish(number, call).calls >= call
        assert ids(published.read()) in ([1, 8 + number], [1, 9 + number])
        lake.publish_table(published.catalog().table("shop.orders"))
        assert ids(published.read()) == [1, 9 + number]
    loaded = published.service.client().load_table("shop.orders").metadata
    assert {*loaded.refs} == {"main", f"kept{len(failing)}"}
    assert table.health().reasons == ()


class Fault:
    """Lets one call fail, before it has an effect; calls count from 1."""

    def __init__(self, fails: int | None) -> None:
        self.fails = fails
        self.calls = 0

    def around(self, call):
        def called(*args, **settings):
            self.calls += 1
            if self.calls == self.fails:
                raise UnavailableError("the service is away")
            return call(*args, **settings)

        return called


@contextmanager
def fails_at(broken, published: Published, call: int | None):
    fault = Fault(call)
    changes = [(LocalStorage, name) for name in ("create", "overwrite", "delete", "open_output")]
    for owner, name in [*changes, *published.changes]:
        broken.setattr(owner, name, fault.around(getattr(owner, name)))
    yield fault
