"""Each template does as its first lines describe, in a real Airflow on SQLite."""

import re
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import jinja2
import pyarrow as pa
import pytest

from airflow_provider_lake.assets.snapshot_range import SnapshotRange
from lakeformat import UnavailableError
from tests.airflow.conftest import DAGS
from tests.airflow.contexts import task_context
from tests.airflow.test_dags import MIDNIGHT, load

ORDERS = [("id", "BIGINT"), ("item", "STRING"), ("price", "BIGINT")]


@pytest.fixture(scope="module")
def dags(airflow_db):
    """The templates; a task that fails here is not tried again in five minutes."""
    return {name: without_retries(dag) for name, dag in load(DAGS).items()}


def without_retries(dag):
    for task in dag.tasks:
        if task.is_mapped:
            task.partial_kwargs["retries"] = 0
        else:
            task.retries = 0
    return dag


def run(dag, *, day=0, **more):
    moment = MIDNIGHT + timedelta(days=day)
    finished = dag.test(logical_date=moment, run_after=moment, **more)
    assert finished.state == "success"
    return finished


def states(finished):
    return {ti.task_id: ti.state for ti in finished.get_task_instances()}


def order(table, *rows, **more):
    ids, items, prices = zip(*rows, strict=True)
    return table.write(pa.table({"id": ids, "item": items, "price": prices}), **more)


def totals(catalog):
    found = catalog.table("shop.item_totals").scan().to_arrow().to_pylist()
    return {row["item"]: (row["total"], row["orders"]) for row in found}


def shop_files(folder, *shops):
    for number, shop in enumerate(shops):
        day = folder / shop / "2024-01-31"
        day.mkdir(parents=True)
        (day / "part-1.csv").write_text(f"id,item,dt\n{number},tea,2024-01-31\n")


def test_shops_are_staged_side_by_side_and_published_at_once(dags, catalog, tmp_path):
    shop_files(tmp_path, "berlin", "paris")
    run(dags["ingest_then_compact"], run_conf={"incoming": str(tmp_path)})

    orders = catalog.table("shop.orders_by_day")
    assert sorted(orders.scan().to_arrow()["id"].to_pylist()) == [0, 1]
    assert orders.snapshots()[0].total_record_count == 2


def test_one_shop_is_staged_and_published(airflow_db, catalog, tmp_path):
    """The first thing that a reader of the template changes is ``SHOPS``."""
    text = (DAGS / "ingest_then_compact.py").read_text()
    changed = text.replace('["berlin", "paris"]', '["berlin"]')
    assert changed != text
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "one_shop.py").write_text(changed)
    shop_files(tmp_path, "berlin")

    dag = load(tmp_path / "dags")["ingest_then_compact"]
    run(without_retries(dag), run_conf={"incoming": str(tmp_path)})

    assert catalog.table("shop.orders_by_day").scan().to_arrow()["id"].to_pylist() == [0]


def checked_orders(dags, folder, *lines, day=0):
    day_folder = folder / f"{MIDNIGHT + timedelta(days=day - 1):%Y-%m-%d}"
    day_folder.mkdir(parents=True, exist_ok=True)
    (day_folder / "part-1.csv").write_text("\n".join(["id,item,price", *lines]))
    moment = MIDNIGHT + timedelta(days=day)
    conf = {"incoming": str(folder)}
    dag = dags["ingest_checked"]
    return dag.test(logical_date=moment, run_after=moment, run_conf=conf)


def test_rows_are_published_only_if_their_checks_pass(dags, catalog, tmp_path):
    good = checked_orders(dags, tmp_path, "1,tea,5", "2,coffee,4")
    orders = catalog.table("shop.checked_orders")
    assert (good.state, orders.scan().count()) == ("success", 2), "coffee is only a warning"

    bad = checked_orders(dags, tmp_path, "3,tea,-5", day=1)
    assert states(bad) == {"stage": "success", "check": "failed", "publish": "upstream_failed"}
    twice = checked_orders(dags, tmp_path, "1,tea,5", day=2)
    assert states(twice)["check"] == "failed"
    assert (orders.scan().count(), orders.staged.list()) == (2, [])

    again = checked_orders(dags, tmp_path, "3,tea,5", day=1)
    assert (again.state, orders.scan().count()) == ("success", 3)


def test_only_tables_with_enough_to_do_are_compacted(dags, catalog):
    busy, idle = (catalog.create_table(f"shop.{name}", ORDERS) for name in ("busy", "idle"))
    for number in range(6):
        order(busy, (number, "tea", 1))
    order(idle, (1, "tea", 1))

    finished = run(dags["maintain_tables"])

    assert (busy.latest_snapshot().commit_kind, idle.latest_snapshot().commit_kind) == (
        "COMPACT",
        "APPEND",
    )
    mapped = [ti for ti in finished.get_task_instances() if ti.task_id == "compact"]
    assert [ti.rendered_map_index for ti in mapped] == ["shop.busy"]
    assert states(finished)["expire_snapshots"] == "success"


def test_a_database_with_nothing_to_do_is_looked_at_and_left(dags, catalog):
    idle = catalog.create_table("shop.idle", ORDERS)
    order(idle, (1, "tea", 1))

    finished = run(dags["maintain_tables"], day=1)

    assert states(finished)["compact"] == "skipped"
    assert states(finished)["expire_snapshots"] == "success"
    assert idle.latest_snapshot().id == 1


def test_a_damaged_table_stops_no_other_one(dags, catalog, warehouse):
    catalog.create_table("shop.damaged", ORDERS)
    Path(warehouse, "shop.db", "damaged", "schema", "schema-0").write_text("{")
    busy = catalog.create_table("shop.busy", ORDERS)
    for number in range(6):
        order(busy, (number, "tea", 1))

    moment = MIDNIGHT + timedelta(days=2)
    finished = dags["maintain_tables"].test(logical_date=moment, run_after=moment)

    ended = {(ti.task_id, ti.rendered_map_index): ti.state for ti in finished.get_task_instances()}
    for step in ("compact", "expire_snapshots"):
        assert ended[step, "shop.busy"] == "success"
        assert ended[step, "shop.damaged"] == "failed"
    assert finished.state == "failed"


def test_a_commit_compacts_if_it_is_worth_it(dags, catalog):
    dag = dags["compact_on_commit"]
    orders = catalog.create_table("shop.orders", ORDERS)
    order(orders, (1, "tea", 1))
    few = dag.test(logical_date=MIDNIGHT, run_after=MIDNIGHT)
    for number in range(6):
        order(orders, (number, "tea", 1))

    run(dag, day=1)

    assert states(few) == {"compact_if_due": "skipped"}
    assert orders.latest_snapshot().commit_kind == "COMPACT"
    [asset] = dag.timetable.asset_condition.objects
    assert asset.watchers[0].trigger.kinds == ("APPEND", "OVERWRITE")


def test_each_change_is_counted_once(dags, catalog):
    dag = dags["changelog_pipeline"]
    orders = catalog.create_table("shop.orders", ORDERS)
    order(orders, (1, "tea", 5), (2, "milk", 2))
    run(dag)
    assert totals(catalog) == {"tea": (5, 1), "milk": (2, 1)}

    order(orders, (3, "tea", 4))
    orders.compact()
    run(dag, day=1)
    assert totals(catalog) == {"tea": (9, 2), "milk": (2, 1)}

    nothing_new = dag.test(
        logical_date=MIDNIGHT + timedelta(days=2), run_after=MIDNIGHT + timedelta(days=2)
    )
    assert states(nothing_new) == {"add_to_totals": "skipped"}
    assert totals(catalog) == {"tea": (9, 2), "milk": (2, 1)}


def test_an_overwrite_replaces_the_totals(dags, catalog):
    """Also if the overwrite is the last of several commits, or leaves no row."""
    dag = dags["changelog_pipeline"]
    orders = catalog.create_table("shop.orders", ORDERS)
    order(orders, (1, "tea", 5))
    run(dag, day=10)
    order(orders, (2, "tea", 7))
    order(orders, (3, "tea", 8), (4, "milk", 1), overwrite="table")
    run(dag, day=11)
    assert totals(catalog) == {"tea": (8, 1), "milk": (1, 1)}

    order(orders, (5, "tea", 1))
    run(dag, day=12)
    assert totals(catalog) == {"tea": (9, 2), "milk": (1, 1)}

    orders.truncate()
    run(dag, day=13)
    assert totals(catalog) == {}


def test_an_overwrite_of_a_table_with_a_changelog_is_refused(dags, catalog):
    orders = catalog.create_table(
        "shop.orders",
        ORDERS,
        primary_key=["id"],
        options={"bucket": "1", "changelog-producer": "lookup"},
    )
    order(orders, (1, "tea", 5))
    orders.compact()
    run(dags["changelog_pipeline"], day=14)
    order(orders, (2, "milk", 2), overwrite="table")
    orders.compact()

    moment = MIDNIGHT + timedelta(days=15)
    refused = dags["changelog_pipeline"].test(logical_date=moment, run_after=moment)

    assert (refused.state, totals(catalog)) == ("failed", {"tea": (5, 1)})


@pytest.mark.parametrize("has_more", [False, True])
def test_changes_are_counted_once_after_a_run_that_did_not_move_its_consumer(
    dags, catalog, monkeypatch, has_more
):
    dag = dags["changelog_pipeline"]
    orders = catalog.create_table("shop.orders", ORDERS)
    order(orders, (1, "tea", 5))
    run(dag, day=20)
    order(orders, (2, "tea", 7))
    with monkeypatch.context() as failing:
        failing.setattr(SnapshotRange, "acknowledge", Mock(side_effect=UnavailableError("down")))
        moment = MIDNIGHT + timedelta(days=21)
        assert dag.test(logical_date=moment, run_after=moment).state == "failed"
    assert totals(catalog) == {"tea": (12, 2)}

    if has_more:
        order(orders, (3, "tea", 1))
    again = run(dag, day=22)
    assert states(again) == {"add_to_totals": "success" if has_more else "skipped"}
    assert totals(catalog) == {"tea": (13, 3) if has_more else (12, 2)}
    assert orders.consumers.list()[0].position == orders.position()


def test_totals_of_a_recreated_table_begin_anew_after_the_advised_steps(dags, catalog):
    dag = dags["changelog_pipeline"]
    orders = catalog.create_table("shop.orders", ORDERS)
    order(orders, (1, "tea", 5))
    run(dag, day=5)
    consumer = orders.consumers.list()[0].id
    catalog.drop_table("shop.orders")
    orders = catalog.create_table("shop.orders", ORDERS)
    order(orders, (2, "milk", 2))
    orders.consumers.set_rewound(consumer, upto=orders.position())  # as for a watcher's event
    order(orders, (3, "milk", 3))

    for day in (6, 7):
        moment = MIDNIGHT + timedelta(days=day)
        assert dag.test(logical_date=moment, run_after=moment).state == "failed"
    assert totals(catalog) == {"tea": (5, 1)}

    catalog.drop_table("shop.item_totals")
    orders.consumers.set(consumer, next_snapshot=1)
    run(dag, day=8)
    assert totals(catalog) == {"milk": (5, 2)}


def test_updates_and_deletes_of_a_keyed_table_are_taken_back(dags, catalog):
    orders = catalog.create_table(
        "shop.orders",
        ORDERS,
        primary_key=["id"],
        options={"bucket": "1", "changelog-producer": "lookup"},
    )
    order(orders, (1, "tea", 5), (2, "milk", 2), (3, "tea", 1))
    orders.compact()
    run(dags["changelog_pipeline"], day=3)
    order(orders, (1, "tea", 7), (2, "milk", 2), kinds=["+U", "-D"])
    orders.compact()

    run(dags["changelog_pipeline"], day=4)

    assert totals(catalog) == {"tea": (8, 2), "milk": (0, 0)}


def test_a_keyed_table_without_a_changelog_is_refused(dags, catalog):
    orders = catalog.create_table("shop.orders", ORDERS, primary_key=["id"], options={"bucket": 1})
    order(orders, (1, "tea", 5))

    refused = dags["changelog_pipeline"].test(logical_date=MIDNIGHT, run_after=MIDNIGHT)

    assert refused.state == "failed"
    assert catalog.list_tables("shop") == ["orders"]


def test_changes_that_no_compaction_has_published_are_waited_for(dags, catalog):
    orders = catalog.create_table(
        "shop.orders",
        ORDERS,
        primary_key=["id"],
        options={"bucket": 1, "changelog-producer": "lookup"},
    )
    order(orders, (1, "tea", 5))

    early = dags["changelog_pipeline"].test(logical_date=MIDNIGHT, run_after=MIDNIGHT)
    assert states(early) == {"add_to_totals": "skipped"}

    orders.compact()
    run(dags["changelog_pipeline"], day=1)
    assert totals(catalog) == {"tea": (5, 1)}


def dry_run(dag):
    """The files that would be deleted; a later task of the DAG asks for approval."""
    task = dag.task_dict["dry_run"].prepare_for_execution()
    return task.execute(task_context(task_id="dry_run"))


def test_nothing_expires_before_somebody_approved(dags, catalog):
    dag = dags["expire_with_approval"]
    order_of_tasks = [dag.task_dict[name] for name in ("dry_run", "approve", "expire")]
    assert [task.downstream_task_ids for task in order_of_tasks] == [{"approve"}, {"expire"}, set()]
    orders = catalog.create_table("shop.orders", ORDERS)
    for number in range(12):
        order(orders, (number, "tea", 1))

    found = dry_run(dag)
    found["report"]["stalled_consumers"] = [{"id": "sync"}]
    ti = SimpleNamespace(xcom_pull=lambda task_ids: {"dry_run": found}[task_ids])
    question = jinja2.Template(order_of_tasks[1].body).render(ti=ti)
    assert "- Snapshots that would expire: **2**\n" in question
    assert re.search(r"would be deleted with them, for good: \*\*\d+\*\*, [\d.]+ KiB\n", question)
    assert "- Oldest kept: snapshot 3. Reason: snapshot 3" in question
    assert "- Consumer sync keeps snapshots from expiring.\n" in question
    before = len(orders.snapshots())
    run(dag, mark_success_pattern="approve")

    assert (before, len(orders.snapshots())) == (12, 10)


def test_no_more_expires_than_somebody_has_approved(dags, catalog):
    tasks = dags["expire_with_approval"].task_dict
    orders = catalog.create_table("shop.orders", ORDERS)
    for number in range(12):
        order(orders, (number, "tea", 1))
    found = dry_run(dags["expire_with_approval"])
    for number in range(5):
        order(orders, (number, "milk", 1))

    expire = tasks["expire"].prepare_for_execution()
    expire.render_template_fields({"ti": SimpleNamespace(xcom_pull=lambda task_ids: found)})
    expire.execute(task_context(task_id="expire"))

    assert [orders.snapshots()[0].id, len(orders.snapshots())] == [3, 15]


def test_a_retry_expires_no_further_snapshots_than_approved(airflow_db):
    """A second attempt of ``expire`` would delete as many snapshots again."""
    dag = load(DAGS / "expire_with_approval.py")["expire_with_approval"]
    retries = {task.task_id: task.retries for task in dag.tasks}
    assert retries == {"dry_run": 2, "approve": 0, "expire": 0}


@pytest.mark.parametrize(
    ("changelogs", "shown"), [(5, ["- Changelogs that would expire: **5**"]), (0, [])]
)
def test_a_question_counts_changelogs_because_they_may_raise_the_limit(dags, changelogs, shown):
    tasks = dags["expire_with_approval"].task_dict
    report = {
        "snapshots": [1, 2],
        "changelogs": [*range(changelogs)],
        "files": {"data": 1},
        "bytes": 1,
        "earliest_snapshot": 3,
    }
    found = {"report": report, "reason": "there is nothing older"}
    asked, limit = (
        jinja2.Template(each).render(ti=SimpleNamespace(xcom_pull=lambda task_ids: found))
        for each in (tasks["approve"].body, tasks["expire"].limit)
    )

    lines = [line for line in asked.splitlines() if line.startswith("- ")]
    assert lines[:-2] == ["- Snapshots that would expire: **2**", *shown]
    assert limit == str(max(2, changelogs))


def test_a_question_counts_snapshots_that_a_long_report_leaves_out(dags):
    question = dags["expire_with_approval"].task_dict["approve"].body
    report = {
        "snapshots": [*range(100)],
        "changelogs": [],
        "left_out": {"snapshots": 20},
        "files": {"data": 1},
        "bytes": 1,
        "earliest_snapshot": 121,
    }
    found = {"report": report, "reason": "there is nothing older"}

    asked = jinja2.Template(question).render(ti=SimpleNamespace(xcom_pull=lambda task_ids: found))

    assert "- Snapshots that would expire: **120**\n" in asked


def test_a_day_that_is_run_again_is_replaced_and_no_other(dags, catalog, tmp_path):
    def land(day, text):
        (tmp_path / day).mkdir(exist_ok=True)
        (tmp_path / day / "part-1.csv").write_text(f"id,item,price\n{text}\n")

    dag, conf = dags["backfill_partitions"], {"incoming": str(tmp_path)}
    land("2024-01-31", "1,tea,5")
    land("2024-02-01", "2,tea,6")
    run(dag, run_conf=conf)
    run(dag, day=1, run_conf=conf)
    land("2024-01-31", "1,tea,50")
    run(dag, run_conf=conf)

    rows = catalog.table("shop.daily_orders").scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["dt"], row["price"]) for row in rows] == [("2024-01-31", 50), ("2024-02-01", 6)]


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"1.csv": "Id,item,Price\n1,tea,5\n"},
        {"1.csv": "id;item;price\n1;tea;5\n"},
        {"1.csv": "id,item\n1,tea\n"},
        {"1.csv": "id,item,price\n1,tea,5\n", "2.csv": "id,item,price,note\n2,tea,5,x\n"},
    ],
)
def test_a_day_with_a_wrong_file_or_without_a_file_is_not_replaced(dags, catalog, tmp_path, files):
    dag, conf = dags["backfill_partitions"], {"incoming": str(tmp_path)}
    folder = tmp_path / "2024-01-31"
    folder.mkdir()
    (folder / "1.csv").write_text("price,item,id\n5,tea,1\n")
    run(dag, run_conf=conf)
    (folder / "1.csv").unlink()
    for name, text in files.items():
        (folder / name).write_text(text)

    again = dag.test(logical_date=MIDNIGHT, run_after=MIDNIGHT, run_conf=conf)

    assert again.state == "failed"
    rows = catalog.table("shop.daily_orders").scan().to_arrow().to_pylist()
    assert rows == [{"id": 1, "item": "tea", "price": 5, "dt": "2024-01-31"}]


def test_the_dedicated_compaction_works_when_something_is_due(dags, catalog):
    flink = catalog.create_table(
        "shop.orders",
        ORDERS,
        primary_key=["id"],
        options={"bucket": "1", "write-only": "true"},
    )
    for number in range(6):
        order(flink, (number, "tea", 1))

    run(dags["compact_flink_table"])

    assert flink.latest_snapshot().commit_kind == "COMPACT"
    assert flink.scan().count() == 6


def test_a_dag_that_runs_all_the_time_does_not_fail_all_the_time(dags):
    """A wrong connection fails at once, and the next run would begin a moment later."""
    endless = [dag for dag in dags.values() if dag.schedule == "@continuous"]

    assert [dag.dag_id for dag in endless] == ["compact_flink_table"]
    assert all(0 < dag.max_consecutive_failed_dag_runs <= 10 for dag in endless)
    # The second run begins where the first one ended; both would have the date of today otherwise,
    # and Airflow 3.3 skips a date that it knows. Airflow 3.1 would not even start the first.
    assert all(dag.start_date is not None for dag in endless)


def test_policies_run_for_tables_that_are_there_and_those_that_are_not_yet(dags, catalog):
    for name in ("daily_orders", "item_totals"):
        table = catalog.create_table(
            f"shop.{name}", [*ORDERS, ("dt", "STRING")], partition_by=["dt"]
        )
        for number in range(6):
            table.write(
                pa.table({"id": [number], "item": ["a"], "price": [1], "dt": ["2999-01-01"]})
            )

    finished = run(dags["lake_shop"])

    found = states(finished)
    assert found["shop_daily_orders.compact"] == "success"
    assert found["shop_daily_orders.expire_partitions"] == "success"
    assert "shop_item_totals.expire_partitions" not in found
    assert catalog.table("shop.daily_orders").latest_snapshot().commit_kind == "COMPACT"


def test_every_template_was_run_here():
    said = Path(__file__).read_text() + Path(__file__).with_name("test_dags.py").read_text()
    names = {path.stem for path in DAGS.glob("*.py")} - {"policies"}
    assert [name for name in sorted(names) if f'dags["{name}"]' not in said] == []
