"""Assets: one URI for a table, wrong URIs refused at parse time, and complete events."""

import subprocess
import sys
from datetime import date
from types import SimpleNamespace

import pyarrow as pa
import pytest
from airflow.sdk import DAG, Asset, AssetAlias, AssetWatcher
from airflow.sdk.execution_time.context import OutletEventAccessors

import lakeformat as lake
from airflow_provider_lake.arguments.checked_arguments import check_table_name
from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.assets.openlineage import dataset_name
from airflow_provider_lake.assets.uri import (
    address_of,
    create_asset,
    lake_asset,
    refuse_watched,
    split_table_name,
)
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.outlet_events import announce, partition_keys
from airflow_provider_lake.sensors.snapshot import LakeSnapshotSensor
from airflow_provider_lake.triggers.cursor import WatchedCommits, advance
from airflow_provider_lake.triggers.snapshot_event import LakeSnapshotEventTrigger
from tests.airflow.contexts import task_context
from tests.airflow.versions import providers_of_tasks, since


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("lake://shop/orders", "lake://shop/orders"),
        ("LAKE://shop/orders/", "lake://shop/orders"),
        ("lake://shop/orders?conn_id=lake_default", "lake://shop/orders"),
        ("lake://shop/orders?conn_id=other", "lake://shop/orders?conn_id=other"),
        ("lake://shop/orders$branch_dev", "lake://shop/orders$branch_dev"),
        ("lake://shop/orders?conn_id=", "lake://shop/orders"),
        ("lake://Shop/Orders", "lake://Shop/Orders"),
        ("lake://shop/orders?watcher=b&watcher=a", "lake://shop/orders?watcher=a&watcher=b"),
        ("lake://s/t?watcher=a b&conn_id=c", "lake://s/t?conn_id=c&watcher=a%20b"),
        ("lake://shop/my orders", "lake://shop/my%20orders"),
        ("lake://shop/my%20orders#note", "lake://shop/my%20orders"),
    ],
)
def test_a_table_has_one_uri(written, normal):
    assert Asset(uri=written).uri == normal
    assert Asset(uri=normal).uri == normal


@pytest.mark.parametrize(
    "written",
    [
        "lake://shop",
        "lake:///orders",
        "lake://shop/orders/2024",
        "lake://shop:80/orders",
        "lake://shop/orders$files",
        "lake://shop/a.b",
        "lake://shop/orders?branch=dev",
        "lake://shop/orders?conn_id=a&conn_id=b",
        "lake://shop/orders?watchers=a",
    ],
)
def test_what_names_no_table_is_refused_at_parse(written):
    with pytest.raises(ValueError, match="lake://"):
        Asset(uri=written)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("#x", "has a fragment"),
        ("?conn_id=", "has a wrong query"),
        ("?conn_id=other#x", "has a fragment"),
    ],
)
@pytest.mark.parametrize("side", ["inlets", "outlets"])
def test_what_airflow_drops_behind_a_table_is_refused_by_the_task_that_names_it(more, why, side):
    asset = Asset(uri=f"lake://shop/orders{more}")
    assert more not in asset.uri

    words = rf"task 't': the asset 'lake://shop/orders.* {why}"
    for kind in (LakeCompactOperator, LakeSnapshotSensor):
        with DAG("d", schedule=None), pytest.raises(LakeArgumentError, match=words):
            kind(task_id="t", table="shop.orders", **{side: [asset]})
        with DAG("d", schedule=None), pytest.raises(LakeArgumentError, match=words):
            kind.partial(task_id="t", **{side: asset})
    with pytest.raises(ValueError, match=why):
        address_of(f"lake://shop/orders{more}")


def test_what_airflow_drops_is_refused_inside_a_condition_on_assets_too():
    plain, more = Asset("lake://shop/items"), Asset("lake://shop/orders#x")
    for given in (plain | more, plain & more, plain & (plain | more)):
        with pytest.raises(LakeArgumentError, match="'lake://shop/orders#x' has a fragment"):
            LakeCompactOperator(task_id="t", table="shop.orders", inlets=[given])
    assert LakeCompactOperator(task_id="t", table="shop.orders", inlets=[plain | plain]).inlets


def test_a_login_that_airflow_drops_is_refused_by_the_task_and_not_shown():
    with pytest.warns(UserWarning, match="should not contain a password"):
        asset = Asset("lake://someone:hush@shop/orders")
    with pytest.raises(LakeArgumentError, match="lake://shop/orders") as refused:
        LakeCompactOperator(task_id="t", table="shop.orders", outlets=[asset])
    assert "hush" not in str(refused.value)


def test_an_asset_with_watchers_is_one_of_its_own():
    """Airflow ends the watchers of an asset with each DAG that names it without them."""
    commits, changes = (
        AssetWatcher(name, LakeSnapshotEventTrigger(table="shop.orders", changelog=changelog))
        for name, changelog in (("commits to orders", False), ("changes", True))
    )
    plain, watched, other, both = (
        lake_asset("shop.orders", watchers=watchers)
        for watchers in ([], [commits], [changes], [commits, changes])
    )
    assert watched.uri == watched.name == "lake://shop/orders?watcher=commits%20to%20orders"
    assert [watcher.name for watcher in watched.watchers] == ["commits to orders"]
    assert len({asset.uri for asset in (plain, watched, other, both)}) == 4
    assert both.uri == lake_asset("shop.orders", watchers=[changes, commits]).uri
    assert {address_of(asset.uri) for asset in (plain, watched, both)} == {address_of(plain.uri)}
    assert lake_asset("shop.orders", watchers=None) == plain
    assert lake_asset("shop.orders", watchers=(each for each in [commits])).watchers


def test_no_two_assets_have_the_same_trigger():
    """Airflow stores the position of a watcher only if its trigger belongs to one asset alone."""
    trigger = LakeSnapshotEventTrigger(table="shop.orders", poll_interval=5)
    one, two = AssetWatcher("a/b", trigger), AssetWatcher("two", trigger)
    assets = [lake_asset("shop.orders", watchers=each) for each in ([one], [two], [one, two])]
    path, arguments = trigger.serialize()
    for asset in assets:
        for watcher in asset.watchers:
            assert watcher.trigger.serialize() == (path, {**arguments, "asset": asset.uri})
    assert len({asset.uri for asset in assets}) == 3
    assert assets[0].uri == "lake://shop/orders?watcher=a%2Fb"
    assert lake_asset("shop.orders", watchers=[one, one]).uri == assets[0].uri


@pytest.mark.parametrize(
    ("table", "name", "watcher", "words"),
    [
        ("shop.orders", None, "", "has no name: give each AssetWatcher a name"),
        ("shop.orders", None, 5, "has no name: give each AssetWatcher a name"),
        ("shop.orders", "orders", "commits", "leave out name='orders'"),
        ("shop.items", None, "commits", "watches 'shop.orders' .* its asset is 'shop.items'"),
    ],
)
def test_watchers_that_would_mix_assets_up_are_refused(table, name, watcher, words):
    watchers = [AssetWatcher(watcher, LakeSnapshotEventTrigger(table="shop.orders"))]
    with pytest.raises(ValueError, match=words):
        lake_asset(table, name=name, watchers=watchers)


def test_advice_about_an_asset_fits_another_connection():
    trigger = LakeSnapshotEventTrigger(table="shop.orders", lake_conn_id="other")
    watched = lake_asset(
        "shop.orders", lake_conn_id="other", watchers=[AssetWatcher("commits", trigger)]
    )
    with pytest.raises(
        ValueError, match=r"as the outlet: lake_asset\('shop.orders', lake_conn_id='other'\)$"
    ):
        refuse_watched([watched])
    with pytest.raises(LakeArgumentError, match=r"write 'shop\.orders' instead of the asset's URI"):
        check_table_name("t", "table", watched.uri)


def test_an_asset_with_watchers_is_told_of_by_no_task(orders):
    """Its watcher sees the commit of the task as well."""
    trigger = LakeSnapshotEventTrigger(table="shop.orders")
    watched = lake_asset("shop.orders", watchers=[AssetWatcher("commits", trigger)])
    with pytest.raises(LakeArgumentError, match=r"as the outlet: lake_asset\('shop.orders'\)"):
        LakeCompactOperator(task_id="t", table="shop.orders", outlets=[watched])
    assert LakeCompactOperator(task_id="t", table="shop.orders", inlets=[watched]).inlets
    write(orders, "a")
    assert told([watched], result_of(1, 0))[watched].extra == {}


def test_a_system_table_has_no_asset_and_the_table_to_write_is_named():
    with pytest.raises(
        ValueError, match=r"^'shop\.orders\$files' is a system table: write 'shop\.o"
    ):
        lake_asset("shop.orders$files")


def test_an_asset_may_have_any_name_of_its_own():
    raw = Asset(name="lake://orders (raw)", uri="s3://b/raw")
    slashed = Asset("LAKE://shop/orders/")
    compact = LakeCompactOperator(task_id="t", table="shop.orders", inlets=[raw, slashed])
    assert compact.inlets == [raw, slashed]
    named = Asset("orders#1", uri="lake://shop/orders")
    other = Asset(uri="s3://bucket/key#part")
    compact = LakeCompactOperator(task_id="t", table="shop.orders", outlets=[named, other])
    assert compact.outlets == [named, other]
    assert lake_asset("shop.a#b").uri == "lake://shop/a%23b"


@pytest.mark.parametrize(
    "text", ["orders", "my orders", "ä", " x", "a/b", "a$b", "a\x00", "a\u2028", "a:b", ""]
)
def test_a_name_is_refused_exactly_where_the_library_refuses_it(text):
    from lakeformat.catalog.names import parse_plain_name

    def accepts(check):
        try:
            check(f"shop.{text}")
        except (ValueError, lake.InvalidRequestError):
            return False
        return True

    assert accepts(split_table_name) == accepts(parse_plain_name)


def test_the_factory_and_the_address_are_each_other_s_way_back():
    asset = create_asset(table="shop.my orders", lake_conn_id="other", extra={"a": 1})
    address = address_of(asset.uri)
    assert (address.name, address.lake_conn_id, asset.extra) == (
        "shop.my orders",
        "other",
        {"a": 1},
    )


def test_airflow_finds_handler_factory_and_converter():
    found = providers_of_tasks()

    assert found.asset_factories["lake"] is create_asset
    assert "lake" in found.asset_to_openlineage_converters


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("file:///data/shop.db/orders", ("file", "/data/shop.db/orders")),
        ("s3://bucket/wh/shop.db/orders", ("s3://bucket", "wh/shop.db/orders")),
    ],
)
def test_openlineage_calls_a_table_by_its_place(location, expected):
    assert dataset_name(location) == expected


def test_assets_load_no_data_stack():
    code = (
        "import sys; from airflow_provider_lake.assets.uri import lake_asset; "
        "lake_asset('shop.orders'); "
        "from airflow_provider_lake.triggers.snapshot_event import LakeSnapshotEventTrigger; "
        "LakeSnapshotEventTrigger(table='shop.orders'); "
        "from airflow_provider_lake.assets.snapshot_range import snapshot_range; "
        "print([n for n in ('pyspark', 'pyarrow', 'lakeformat') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# ------------------------------------------------------------------ outlets


@pytest.fixture
def orders(catalog):
    columns = [("id", "BIGINT"), ("dt", "STRING")]
    return catalog.create_table("shop.orders", columns, partition_by=["dt"])


def write(table, *days, **more):
    return table.write(pa.table({"id": [*range(len(days))], "dt": [*days]}), **more)


def told(outlets, result, **more):
    """Return the events of a task's outlets after it has announced a result."""
    context = {"outlet_events": OutletEventAccessors(), "ti": SimpleNamespace()}
    announce(context, outlets, result, **more)
    return context["outlet_events"]


def result_of(snapshot_id, previous):
    return {"table": "shop.orders", "snapshot_id": snapshot_id, "previous_snapshot_id": previous}


def test_a_declared_outlet_is_told_what_was_published(orders):
    write(orders, "a")
    write(orders, "b", "c", watermark=5)
    outlet = lake_asset("shop.orders", name="the orders")

    extra = told([outlet], result_of(2, 1))[outlet].extra

    assert (extra["previous_snapshot_id"], extra["snapshot_id"], extra["rows"]) == (1, 2, 2)
    assert (extra["commit_kind"], extra["watermark"]) == ("APPEND", 5)


def test_outlets_that_are_other_tables_are_left_alone(orders):
    write(orders, "a")
    others = [lake_asset("shop.items"), lake_asset("shop.orders", lake_conn_id="else"), Asset("x")]

    assert len(told(others, result_of(1, None))) == 0


def test_an_alias_gets_the_asset_of_the_table(orders):
    write(orders, "a")
    alias = AssetAlias("whatever lands")

    [event] = told([alias], result_of(1, None))[alias].asset_alias_events

    assert event.dest_asset_key.uri == "lake://shop/orders"
    assert event.extra["snapshot_id"] == 1


@since("3.3", "partitions of asset events")
def test_the_partitions_that_were_touched_can_be_the_event_s_keys(orders):
    write(orders, "2024-01-01")
    write(orders, "2024-01-03", "2024-01-02")
    outlet = lake_asset("shop.orders")

    event = told([outlet], result_of(2, 1), partition_column="dt")[outlet]

    assert event.partition_keys == {"2024-01-02", "2024-01-03"}


def test_keys_for_an_event_that_cannot_have_any_are_refused(orders):
    write(orders, "2024-01-01")
    outlet = lake_asset("shop.orders")

    with pytest.raises(LakeArgumentError, match=r"'partition_column' needs Airflow 3\.3 or newer"):
        announce(task_context(), [outlet], result_of(1, None), partition_column="dt")


@pytest.mark.parametrize("legacy", ["true", "false"])
def test_keys_of_a_column_of_days_are_days_however_directories_are_named(catalog, legacy):
    columns = [("id", "BIGINT"), ("day", "DATE")]
    options = {"partition.legacy-name": legacy}
    table = catalog.create_table("shop.days", columns, partition_by=["day"], options=options)
    for day in (date(2024, 1, 31), date(1969, 12, 31), None):
        table.write(pa.table({"id": [1], "day": pa.array([day], pa.date32())}))

    assert partition_keys(table, "day", after=0, upto=3) == ["1969-12-31", "2024-01-31"]


def test_keys_of_a_column_that_makes_no_partitions_are_refused(orders):
    """Without keys a DAG that waits for them would never start."""
    write(orders, "2024-01-01")
    with pytest.raises(
        LakeArgumentError, match=r"'day' is not a partition column of .*: use one of dt"
    ):
        told([lake_asset("shop.orders")], result_of(1, None), partition_column="day")


@pytest.mark.parametrize("more", [{}, {"format": "mixed", "primary_key": ["id"]}], ids=str)
def test_tables_of_other_formats_have_no_keys_and_no_changelog_to_wait_for(tmp_path, more):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", [("id", "BIGINT")], partition_by=["id"], **more)

    with pytest.raises(lake.UnsupportedError, match="leave out partition_column"):
        partition_keys(table, "id", after=0, upto=0)
    with pytest.raises(lake.UnsupportedError, match=r"table\.changes\(position\) reads"):
        advance(table, None, None, WatchedCommits("shop.t", ("APPEND",), True))


def test_nothing_published_is_nothing_told(orders):
    outlet = lake_asset("shop.orders")
    assert len(told([outlet], result_of(None, None))) == 0
