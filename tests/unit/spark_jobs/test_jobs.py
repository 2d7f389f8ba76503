"""Each job once: its request, the table afterwards, and its result."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import (
    analyze,
    changelog,
    commit,
    compact,
    compact_database,
    expire_partitions,
    expire_snapshots,
    health,
    ingest,
    publish,
    remove_orphans,
    rescale,
    rollback,
    tag,
)
from spark_jobs.job_requests.compact import CompactRequest
from spark_jobs.job_requests.health import HealthRequest
from spark_jobs.runtime.job import PartlyFailedError
from tests.unit.publish.published import iceberg, unobserved

EVERY_RESULT = {
    "job",
    "table",
    "skipped",
    "reason",
    "snapshot_id",
    "previous_snapshot_id",
    "replayed",
    "seconds",
    "report",
}


@pytest.fixture
def catalog(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def orders(catalog):
    """A table of two days in two snapshots, unpartitioned and small."""
    table = catalog.create_table("shop.orders", [("id", "BIGINT"), ("note", "STRING")])
    for number in (1, 2):
        table.write(pa.table({"id": [number], "note": ["x"]}))
    return table


@pytest.fixture
def request_for(tmp_path):
    def build(**more):
        return {"warehouse": str(tmp_path / "warehouse"), "table": "shop.orders", **more}

    return build


@pytest.mark.parametrize("form", [CompactRequest, dict])
def test_a_request_may_be_typed_or_a_dict(orders, request_for, form):
    result = compact.run(form(**request_for(dry_run=True)))

    assert result["reason"] == "1 bucket or group of files would be compacted"


def test_the_request_of_another_job_is_refused(orders, request_for):
    with pytest.raises(lake.InvalidRequestError, match="must be a JSON object, got HealthRequest"):
        compact.run(HealthRequest(**request_for()))


def keyed(catalog, name="shop.stock", **options):
    return catalog.create_table(
        name,
        [("sku", "STRING NOT NULL"), ("pieces", "BIGINT")],
        primary_key=["sku"],
        options={"bucket": "1", **options},
    )


def said(result):
    return result["skipped"], result["snapshot_id"], result["previous_snapshot_id"]


def test_every_result_has_the_same_members(orders, request_for):
    result = health.run(request_for())
    assert set(result) == EVERY_RESULT
    assert (result["job"], result["table"]) == ("health", "shop.orders")


def test_compact_merges_files_and_names_its_snapshot(catalog, request_for):
    stock = keyed(catalog)
    for pieces in (1, 2):
        stock.write(pa.table({"sku": ["pear"], "pieces": [pieces]}))
    planned = compact.run(request_for(table="shop.stock", dry_run=True))
    done = compact.run(request_for(table="shop.stock"))
    again = compact.run(request_for(table="shop.stock"))

    assert said(planned) == (False, None, 2)
    assert said(done) == (False, 3, 2)
    assert said(again) == (True, None, 3)
    assert done["report"]["files_in"] == 2
    assert stock.scan().to_arrow().to_pylist() == [{"sku": "pear", "pieces": 2}]


def test_a_compaction_is_found_by_its_identity(catalog, request_for):
    stock = keyed(catalog)
    for pieces in (1, 2):
        stock.write(pa.table({"sku": ["pear"], "pieces": [pieces]}))
    who = {"commit_user": "run", "commit_identifier": 1}
    first = compact.run(request_for(table="shop.stock", **who))
    stock.write(pa.table({"sku": ["pear"], "pieces": [3]}))
    again = compact.run(request_for(table="shop.stock", **who))
    other = compact.run(request_for(table="shop.stock", commit_user="run", commit_identifier=2))

    assert said(first) == said(again) == (False, 3, 2)
    assert (first["replayed"], again["replayed"], other["replayed"]) == (False, True, False)


def test_the_compactions_of_a_database_are_found_by_one_identity(catalog, tmp_path):
    for name in ("shop.a", "shop.b"):
        table = keyed(catalog, name)
        for pieces in (1, 2):
            table.write(pa.table({"sku": ["pear"], "pieces": [pieces]}))
    wanted = {"warehouse": str(tmp_path / "warehouse"), "database": "shop"}
    wanted |= {"commit_user": "run", "commit_identifier": 1}
    first, again = compact_database.run(wanted), compact_database.run(wanted)

    assert (first["skipped"], again["skipped"]) == (False, False)
    assert [table["report"]["earlier_snapshot_ids"] for table in again["report"]["tables"]] == [
        [3],
        [3],
    ]


def test_rescale_gives_partitions_another_number_of_buckets(catalog, request_for):
    stock = keyed(catalog)
    stock.write(pa.table({"sku": ["pear", "plum", "fig"], "pieces": [1, 2, 3]}))
    wanted = request_for(table="shop.stock", bucket=2)
    planned = rescale.run({**wanted, "dry_run": True})
    done, again = rescale.run(wanted), rescale.run(wanted)

    assert [said(each) for each in (planned, done, again)] == [
        (False, None, 1),
        (False, 2, 1),
        (True, None, 2),
    ]


def test_changelog_tells_what_has_changed(catalog, request_for):
    stock = keyed(catalog, **{"changelog-producer": "lookup"})
    stock.write(pa.table({"sku": ["pear"], "pieces": [1]}))
    done = changelog.run(request_for(table="shop.stock"))
    assert said(done) == (False, 2, 1)
    assert done["report"]["changelog_rows"] == 1


def test_changelog_of_a_table_without_one_is_refused(orders, request_for):
    with pytest.raises(lake.InvalidRequestError, match="changelog-producer"):
        changelog.run(request_for())


def test_compact_database_goes_on_where_a_table_fails(catalog, tmp_path):
    for name in ("shop.a", "shop.b"):
        table = keyed(catalog, name)
        table.write(pa.table({"sku": ["pear"], "pieces": [1]}))
        table.write(pa.table({"sku": ["pear"], "pieces": [2]}))
    for file in (tmp_path / "warehouse/shop.db/a/bucket-0").iterdir():
        file.unlink()
    with pytest.raises(
        PartlyFailedError, match=r"1 of 2 tables failed; the first is shop\.a"
    ) as caught:
        compact_database.run({"warehouse": str(tmp_path / "warehouse"), "database": "shop"})
    result = caught.value.result
    assert (result["database"], result["skipped"]) == ("shop", False)
    assert [bool(each["error"]) for each in result["report"]["tables"]] == [True, False]
    assert catalog.table("shop.b").latest_snapshot().id == 3


def test_compact_database_that_no_table_can_do_is_a_wrong_request(catalog, tmp_path):
    for name in ("shop.a", "shop.b"):
        keyed(catalog, name).write(pa.table({"sku": ["pear"], "pieces": [1]}))
    wanted = {"warehouse": str(tmp_path / "warehouse"), "database": "shop", "where": "day = 1"}
    for dry_run in (True, False):
        with pytest.raises(
            lake.InvalidRequestError, match=r"2 of 2 tables failed; the first is shop\.a: .*'day'"
        ):
            compact_database.run({**wanted, "dry_run": dry_run})


def test_expire_snapshots_leaves_what_it_is_told_to(orders, request_for):
    wanted = request_for(retain_min=1, retain_max=1)
    planned = expire_snapshots.run({**wanted, "dry_run": True})
    done, again = expire_snapshots.run(wanted), expire_snapshots.run(wanted)

    assert planned["report"]["snapshots"] == [1]
    assert (done["skipped"], done["report"]["snapshots"]) == (False, [1])
    assert again["skipped"]
    assert [each.id for each in orders.snapshots()] == [2]


def test_remove_orphans_only_looks_unless_told_otherwise(orders, tmp_path, request_for):
    stranger = tmp_path / "warehouse/shop.db/orders/bucket-0"
    stranger /= "data-00000000-0000-0000-0000-000000000000-0.parquet"
    stranger.write_bytes(b"left behind")
    os.utime(stranger, (1, 1))
    wanted = request_for(older_than="2 d")
    looked = remove_orphans.run(wanted)
    assert (looked["skipped"], looked["report"]["orphan_files"]) == (False, 1)
    assert stranger.exists()
    remove_orphans.run({**wanted, "dry_run": False})
    assert not stranger.exists()
    assert remove_orphans.run(wanted)["skipped"]


def test_expire_partitions_deletes_old_days(catalog, request_for):
    days = catalog.create_table(
        "shop.days", [("dt", "STRING"), ("id", "BIGINT")], partition_by=["dt"]
    )
    days.write(pa.table({"dt": ["2001-01-01", "2999-01-01"], "id": [1, 2]}))
    wanted = request_for(table="shop.days", expiration_time="7 d", strategy="values-time")
    done = expire_partitions.run(wanted)
    assert said(done) == (False, 2, 1)
    assert days.scan().to_arrow()["dt"].to_pylist() == ["2999-01-01"]
    assert said(expire_partitions.run(wanted)) == (True, None, 2)


def test_a_tag_is_made_kept_replaced_renamed_and_deleted(orders, request_for):
    def act(action, **more):
        return tag.run(request_for(action=action, tag="monthly", **more))

    made = act("create", snapshot=1)
    kept = act("create", snapshot=1, exist_ok=True)
    replaced = act("replace")
    assert [each["skipped"] for each in (made, kept, replaced)] == [False, True, False]
    assert {each.name: each.snapshot_id for each in orders.tags.list()} == {"monthly": 2}
    act("rename", new_name="yearly")
    gone = tag.run(request_for(action="delete", tag="yearly"))
    missing = tag.run(request_for(action="delete", tag="yearly", missing_ok=True))
    assert (gone["skipped"], missing["skipped"], list(orders.tags.list())) == (False, True, [])


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"action": "delete", "snapshot": 1}, "key 'snapshot' belongs to action 'create' or"),
        ({"action": "create", "dry_run": True}, "key 'dry_run' belongs to action 'delete'"),
        ({"action": "rename"}, "needs key 'new_name'"),
    ],
)
def test_a_key_of_another_action_is_refused(request_for, keys, words):
    with pytest.raises(lake.InvalidRequestError, match=words):
        tag.run(request_for(tag="monthly", **keys))


def test_rollback_publishes_the_old_rows(orders, request_for):
    planned = rollback.run(request_for(snapshot=1, dry_run=True))
    done = rollback.run(request_for(snapshot=1))
    assert said(planned) == (False, None, 2)
    assert said(done) == (False, 3, 2)
    assert orders.scan().count() == 1


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("as_latest", [True, False])
def test_a_rollback_to_where_the_table_is_has_nothing_to_do(
    orders, request_for, as_latest, dry_run
):
    stays = rollback.run(request_for(snapshot=2, as_latest=as_latest, dry_run=dry_run))
    goes = rollback.run(request_for(snapshot=1, as_latest=as_latest, dry_run=dry_run))
    assert said(stays) == (True, None, 2)
    assert goes["skipped"] is False


@pytest.mark.parametrize("as_latest", [True, False])
def test_a_rollback_that_is_repeated_keeps_what_came_since(orders, request_for, as_latest):
    wanted = request_for(snapshot=1, as_latest=as_latest, commit_user="run", commit_identifier=1)
    first = rollback.run(wanted)
    orders.write(pa.table({"id": [9], "note": ["since"]}))
    again = rollback.run(wanted)

    assert said(first) == (False, 3, 2) if as_latest else (False, None, 2)
    assert said(again)[:2] == said(first)[:2]
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert orders.scan().to_arrow()["id"].to_pylist() == [1, 9]


def test_upkeep_that_is_repeated_does_nothing_to_what_came_since(catalog, request_for):
    """Jobs that have no identity: what they have done once is not due a second time."""
    columns = [("dt", "STRING NOT NULL"), ("id", "BIGINT NOT NULL")]
    table = catalog.create_table(
        "shop.days", columns, primary_key=["dt", "id"], partition_by=["dt"], options={"bucket": "1"}
    )
    table.write(pa.table({"dt": ["2020-01-01", "2999-01-01"], "id": [1, 2]}))
    wanted = request_for(table="shop.days")
    expiry = {**wanted, "expiration_time": "90 d", "timestamp_formatter": "yyyy-MM-dd"}
    table = catalog.alter_table("shop.days", lake.set_option("bucket", "2"))
    gone, more = expire_partitions.run(expiry), rescale.run(wanted)
    table.write(pa.table({"dt": ["2999-01-01"], "id": [3]}))
    again = [expire_partitions.run(expiry), rescale.run(wanted)]

    assert (gone["skipped"], more["skipped"]) == (False, False)
    assert [each["skipped"] for each in again] == [True, True]
    assert sorted(catalog.table("shop.days").scan().to_arrow()["id"].to_pylist()) == [2, 3]


def test_commits_of_other_engines_are_published_once_for_readers_of_iceberg(catalog, request_for):
    table = catalog.create_table(
        "shop.orders", [("id", "BIGINT")], options={"metadata.iceberg.storage": "table-location"}
    )
    table.write(pa.table({"id": [1]}))
    theirs = unobserved(table)
    for number in (2, 3):
        theirs.write(pa.table({"id": [number]}))
    first, again = publish.run(request_for()), publish.run(request_for())
    assert first["reason"] == "the Iceberg metadata shows snapshot 3; published 2 snapshots"
    assert first["report"]["published"] == [2, 3]
    assert (said(first), said(again)) == ((False, None, 3), (True, None, 3))
    assert sorted(iceberg(table).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    theirs.tags.create("v1")
    tagged = publish.run(request_for())
    assert (tagged["skipped"], tagged["report"]["updated"]) == (False, True)


def test_a_table_without_the_option_is_not_published(orders, request_for):
    with pytest.raises(
        lake.InvalidRequestError,
        match=r"set its option 'metadata\.iceberg\.storage' to 'table-location'",
    ):
        publish.run(request_for())


def test_analyze_publishes_once_for_an_identity(orders, request_for):
    wanted = request_for(columns=["id"], commit_user="run", commit_identifier=1)
    first, again = analyze.run(wanted), analyze.run(wanted)
    assert said(first) == said(again) == (False, 3, 2)
    assert (first["replayed"], again["replayed"]) == (False, True)


def test_what_is_staged_is_published_by_the_commit_job_once(orders, tmp_path, request_for):
    (tmp_path / "more.csv").write_text("id,note\n3,y\n4,z\n")
    wanted = request_for(
        source=str(tmp_path / "more.csv"), stage=True, commit_user="run", commit_identifier=1
    )
    first, again = ingest.run(wanted), ingest.run(wanted)
    assert first["staged"] == again["staged"]
    assert (first["replayed"], again["replayed"], orders.scan().count()) == (False, True, 2)

    publish = request_for(staged=[first["staged"]])
    done, repeated = commit.run(publish), commit.run(publish)
    assert said(done) == said(repeated) == (False, 3, 2)
    assert (done["replayed"], repeated["replayed"], orders.scan().count()) == (False, True, 4)
    with pytest.raises(lake.InvalidRequestError, match=f"'staged' has '{first['staged']}' twice"):
        commit.run(request_for(staged=[first["staged"], "other", first["staged"]]))


def test_staged_rows_whose_buckets_have_changed_fail_for_good(catalog, tmp_path, request_for):
    """A retry of the commit would publish the same files: they must be staged again."""
    one_key_each = {"bucket": "-1", "dynamic-bucket.target-row-num": "1"}
    table = keyed(catalog, "shop.orders", **one_key_each)
    table.write(pa.table({"sku": ["pear"], "pieces": [1]}))
    staged = []
    for sku in ("plum", "pear"):
        file = tmp_path / f"{sku}.csv"
        file.write_text(f"sku,pieces\n{sku},2\n")
        staged.append(ingest.run(request_for(source=str(file), stage=True))["staged"])
    commit.run(request_for(staged=staged[:1]))
    with pytest.raises(lake.BucketsChangedError, match="write the rows again") as refused:
        commit.run(request_for(staged=staged[1:]))
    assert refused.value.is_final
    assert sorted(table.scan().to_arrow()["pieces"].to_pylist()) == [1, 2]


def test_a_plan_starts_no_spark(orders, request_for):
    planned = compact.run(request_for(engine="spark", dry_run=True), spark="no Spark may be used")
    assert planned["report"]["buckets"]


def test_how_many_threads_is_nothing_for_spark(orders, request_for):
    with pytest.raises(lake.InvalidRequestError, match="key 'executor' needs engine 'python'"):
        compact.run(request_for(engine="spark", executor="serial"))
