"""Consumers of an Iceberg table keep the position of their reader in the table's directory."""

from __future__ import annotations

import json
import os
import re

import pytest

import lakeformat as lake
from lakeformat.tables.consumers.files import ConsumerFiles
from tests.unit.iceberg.growing_table import GrowingTable


@pytest.fixture
def made(tmp_path):
    return GrowingTable(tmp_path, "cow_dml", 4)


def test_a_consumer_is_a_file_that_java_does_not_take_for_an_orphan(made):
    table = made.open()
    second = table.snapshots()[1].position
    table.consumers.set("job", after=second)
    uuid = table._loaded().metadata.table_uuid
    file = made.root / "_lake" / "consumer" / uuid / "consumer-job"
    assert json.loads(file.read_text()) == {"position": str(second)}


def test_a_list_shows_how_far_each_consumer_is_behind(made):
    table = made.open()
    table.consumers.set("a", next_snapshot=1)
    table.consumers.set("b", after=table.position())
    made.grow(1)
    first, second = table.consumers.list()
    assert (first.id, first.next_snapshot, first.behind, first.is_stale) == ("a", 1, 4, False)
    assert (second.id, second.behind, second.position.number) == ("b", 1, 3)
    assert second.position.is_exactly(table.snapshots()[2].position)
    assert set(second.to_dict()) == {
        "consumer_id",
        "next_snapshot_id",
        "progress_time",
        "behind",
        "is_stale",
    }
    changes = table.changes(second.position).to_arrow()
    assert changes["id"].to_pylist() == [3]


def test_each_branch_has_consumers_of_its_own(tmp_path):
    made = GrowingTable(tmp_path, "branches_tags")
    made.grow()
    dev = made.open("dev")
    dev.consumers.set("job", after=dev.position())
    assert made.open().consumers.list() == []
    assert [each.position for each in made.open("dev").consumers.list()] == [dev.position()]
    with pytest.raises(lake.InvalidRequestError, match="of different histories"):
        made.open().consumers.set("job", after=dev.position())


def test_a_consumer_moves_and_is_deleted(made):
    consumers = made.open().consumers
    consumers.set("job", next_snapshot=2)
    consumers.reset("job", next_snapshot=4)
    assert [each.next_snapshot for each in consumers.list()] == [4]
    consumers.reset("job", dry_run=True)
    consumers.reset("job")
    assert consumers.list() == []
    with pytest.raises(lake.NotFoundError, match="has no consumer 'job'; it has none"):
        consumers.reset("job")


def test_consumers_are_chosen_by_their_names_and_their_age(made):
    consumers = made.open().consumers
    for name in ("job-1", "job-2", "page"):
        consumers.set(name, next_snapshot=1)
    dry = consumers.clear(including="job-.*", excluding="job-2", dry_run=True)
    assert (dry.removed, dry.kept, dry.dry_run) == (("job-1",), ("job-2", "page"), True)
    assert consumers.clear(including="job-.*").removed == ("job-1", "job-2")
    assert consumers.expire(older_than="1 d").removed == ()
    [page] = made.root.rglob("_lake/consumer/*/consumer-page")
    os.utime(page, (0, 0))
    assert consumers.expire(older_than="1 d").removed == ("page",)


@pytest.mark.parametrize(
    ("progress", "error"),
    [
        ({}, "pass either next_snapshot="),
        ({"next_snapshot": 1, "after": 1}, "pass either next_snapshot="),
        ({"next_snapshot": 0}, "at least 1, got 0"),
        ({"next_snapshot": 9}, "the newest position is main/3@"),
        ({"after": "main/2@5"}, "a rollback may have removed later ones"),
        ({"after": "x"}, "is not a position"),
    ],
)
def test_progress_that_the_branch_does_not_have_is_refused(made, progress, error):
    consumers = made.open().consumers
    with pytest.raises(lake.InvalidRequestError, match=error):
        consumers.set("job", **progress)
    assert consumers.list() == []


def test_a_dry_run_only_checks(made):
    consumers = made.open().consumers
    consumers.set("job", next_snapshot=2, dry_run=True)
    with pytest.raises(lake.InvalidRequestError):
        consumers.set("job", next_snapshot=9, dry_run=True)
    assert consumers.list() == []


def test_a_name_that_no_file_can_have_is_refused(made):
    with pytest.raises(lake.InvalidRequestError, match="must not be blank"):
        made.open().consumers.set("a/b", next_snapshot=1)


def test_one_whose_next_commits_expired_has_fallen_behind(tmp_path):
    made = GrowingTable(tmp_path, "expired")
    table = made.open()
    table.consumers.set("slow", next_snapshot=2)
    made.grow()
    assert [each.is_stale for each in table.consumers.list()] == [True]
    with pytest.raises(
        lake.InvalidRequestError, match=r"after position .* have expired"
    ) as refused:
        table.consumers.set("slow", next_snapshot=2)
    at = table.position(re.findall(r"table\.position\('(.*?)'\)", str(refused.value))[0])
    assert "scan(snapshot=at); table.consumers.set('slow', after=at)" in str(refused.value)
    assert table.scan(snapshot=at).count() == table.scan().count()
    table.consumers.set("slow", after=at)


@pytest.mark.parametrize("before", [None, 1])
def test_an_expiry_before_the_file_was_written_undoes_the_change(tmp_path, monkeypatch, before):
    made = GrowingTable(tmp_path, "expired")
    table = made.open()
    if before is not None:
        table.consumers.set("job", next_snapshot=before)
    write = ConsumerFiles.write

    def expires_first(files, consumer_id, content):
        made.grow()
        write(files, consumer_id, content)

    monkeypatch.setattr(ConsumerFiles, "write", expires_first)
    with pytest.raises(lake.InvalidRequestError, match="after it have expired"):
        table.consumers.set("job", next_snapshot=3)
    monkeypatch.undo()
    assert [each.next_snapshot for each in table.consumers.list()] == [before or 0][: bool(before)]


def test_a_damaged_file_is_named_and_can_be_replaced(made, monkeypatch):
    monkeypatch.setattr("lakeformat.tables.consumers.files.PAUSE_SECONDS", 0)
    consumers = made.open().consumers
    consumers.set("job", next_snapshot=1)
    [file] = made.root.rglob("_lake/consumer/*/consumer-job")
    for content in ("", "{}", '{"position": 1.5}'):
        file.write_text(content)
        with pytest.raises(lake.CorruptTableError, match=r"consumer-job.*delete the file, or set"):
            consumers.list()
    consumers.set("job", next_snapshot=2)
    assert [each.next_snapshot for each in consumers.list()] == [2]


def test_a_rewound_consumer_keeps_the_snapshot_to_read_until_it_is_set(made):
    table = made.open()
    upto = table.snapshots()[1].position
    read = table.consumers.set_rewound("job", upto=upto)

    [state] = table.consumers.list()

    assert state.position.is_exactly(read)
    assert (state.is_stale, table.since(read).rewound) == (False, True)
    unread = table.consumers.unread(())
    table.consumers.set("job", after=upto)
    assert table.consumers.unread(()) == unread
    assert not table.since(table.consumers.list()[0].position).rewound
