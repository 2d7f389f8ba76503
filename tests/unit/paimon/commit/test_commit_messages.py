"""Prepared messages: what is refused before anything is written, and what comes of the rest."""

from __future__ import annotations

import copy
import shutil
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.files.vector_record import DeletionVectorRange
from lakeformat.paimon.commit.commit import CommitOptions, commit_statistics
from lakeformat.paimon.commit.deltas import delta_of
from lakeformat.paimon.deletion.abort import abort_messages
from lakeformat.paimon.metadata import commit_message
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.manifest_list import read_manifest_list
from lakeformat.paimon.metadata.record_file import decode_avro_file, encode_avro_file
from lakeformat.paimon.metadata.statistics import TableStatistics
from lakeformat.paimon.metadata.tag import Tag, create_tag
from lakeformat.storage import MemoryStorage
from tests import sampling
from tests.manifest_entries import entries_in
from tests.paper import (
    commit,
    file,
    head,
    live,
    message,
    moved,
    paper_table,
    vectors,
    with_options,
)

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def orders(tmp_path) -> lake.Table:
    catalog = lake.open_catalog(
        str(tmp_path / "wh"), options={"external-roots": str(tmp_path / "fast")}
    )
    catalog.create_database("shop")
    outside = {"data-file.external-paths": f"file:{tmp_path}/fast"}
    return catalog.create_table("shop.orders", [("id", "BIGINT")], options=outside)


def prepared(table: lake.Table, rows: pa.Table = ROWS) -> list[lake.CommitMessage]:
    writer = table.new_writer()
    writer.write(rows)
    return writer.prepare()


def test_a_message_travels_as_bytes_with_everything_it_says():
    index = IndexManifestEntry(
        partition=b"\0\0\0\0" + bytes(8),
        bucket=3,
        index_type="DELETION_VECTORS",
        file_name="index-1",
        file_size=7,
        row_count=1,
        ranges=(DeletionVectorRange("a", 1, 2, 3),),
    )
    everything = lake.CommitMessage(
        bucket=3,
        total_buckets=4,
        base_snapshot=9,
        base_identity="uuid of snapshot 9",
        table="file:///warehouse/shop.db/orders",
        new_files=(file("a"),),
        deleted_files=(file("b"),),
        changelog_files=(file("c"),),
        compact_before=(file("d"),),
        compact_after=(file("e", level=5),),
        compact_changelog_files=(file("f"),),
        new_index_files=(index,),
        deleted_index_files=(index,),
        compact_new_index_files=(index,),
        compact_deleted_index_files=(index,),
    )
    assert lake.CommitMessage.from_bytes(everything.to_bytes()) == everything
    empty = lake.CommitMessage(bucket=0)
    assert lake.CommitMessage.from_bytes(empty.to_bytes()) == empty


def test_a_message_of_a_version_that_stored_no_identity_is_read():
    [record] = decode_avro_file(whole_message().to_bytes(), "message")
    del record["baseIdentity"]
    schema = copy.deepcopy(commit_message._SCHEMA)
    schema["fields"] = [each for each in schema["fields"] if each["name"] != "baseIdentity"]
    sent = encode_avro_file(schema, [record], compression="null", zstd_level=1)
    assert lake.CommitMessage.from_bytes(sent) == whole_message()


def whole_message() -> lake.CommitMessage:
    entry = IndexManifestEntry(
        partition=b"\0\0\0\0" + bytes(8),
        bucket=3,
        index_type="DELETION_VECTORS",
        file_name="index-1",
        file_size=7,
        row_count=1,
        ranges=(DeletionVectorRange("a", 1, 2, 3),),
    )
    return lake.CommitMessage(
        bucket=3, base_snapshot=9, new_files=(file("a"),), new_index_files=(entry,)
    )


def test_of_a_message_cut_short_anywhere_nothing_is_read():
    content = whole_message().to_bytes()
    for size in range(len(content)):
        with pytest.raises(lake.InvalidRequestError, match="not a commit message of this version"):
            lake.CommitMessage.from_bytes(content[:size])


@settings(max_examples=sampling.count(8, whole=300))
@given(damage=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255))))
def test_a_message_with_damaged_bytes_is_refused_or_is_whole(damage):
    content = bytearray(whole_message().to_bytes())
    for place, byte in damage:
        content[int(place * len(content))] = byte
    try:
        read = lake.CommitMessage.from_bytes(bytes(content))
    except lake.InvalidRequestError:
        return
    assert lake.CommitMessage.from_bytes(read.to_bytes()) == read


@given(content=st.binary(max_size=200))
def test_bytes_that_are_no_message_are_refused(content):
    with pytest.raises(lake.InvalidRequestError, match="not a commit message of this version") as e:
        lake.CommitMessage.from_bytes(content)
    assert "backup" not in str(e.value)


@pytest.mark.parametrize("member", ["partition", "bucket", "baseSnapshot", "branch"])
@pytest.mark.parametrize("value", ["x", 3, 1.5, b"x", True, None, ["x"]])
def test_a_member_of_another_type_is_refused(member, value):
    """The bytes carry a schema of their own, so a sender can put anything anywhere."""
    [record] = decode_avro_file(whole_message().to_bytes(), "message")
    schema = copy.deepcopy(commit_message._SCHEMA)
    [field] = [field for field in schema["fields"] if field["name"] == member]
    texts = {"type": "array", "items": "string"}
    field["type"] = ["null", "string", "long", "double", "bytes", "boolean", texts]
    sent = encode_avro_file(schema, [record | {member: value}], compression="null", zstd_level=1)
    is_right = type(value) in (type(record[member]), type(None) if member == "baseSnapshot" else 0)
    if is_right:
        assert lake.CommitMessage.from_bytes(sent).table is None
        return
    with pytest.raises(lake.InvalidRequestError, match="not a commit message of this version"):
        lake.CommitMessage.from_bytes(sent)


@pytest.mark.parametrize("content", [None, "text", 3, ["a"]])
def test_a_message_is_read_from_bytes_alone(content):
    with pytest.raises(lake.InvalidRequestError, match=r"result of CommitMessage.to_bytes"):
        lake.CommitMessage.from_bytes(content)


def test_a_message_committed_a_second_time_names_the_snapshot_that_has_it(orders):
    messages = prepared(orders)
    orders.commit(messages, commit=lake.CommitId("first", 1))
    orders.write(ROWS)
    with pytest.raises(lake.InvalidRequestError, match=r"snapshot 1 \(APPEND of user 'first'\)"):
        orders.commit(messages)
    assert orders.scan().count() == 4


def test_the_same_identity_makes_the_second_time_harmless(orders):
    messages = prepared(orders)
    identity = lake.CommitId("run", 1)
    orders.commit(messages, commit=identity)
    assert orders.commit(messages, commit=identity).replayed
    assert orders.find_commit(identity).snapshot_id == 1
    assert orders.find_commit(lake.CommitId("run", 2)) is None


def test_one_identity_for_other_rows_is_refused(orders):
    identity = lake.CommitId("run", 1)
    orders.commit(prepared(orders), commit=identity)
    with pytest.raises(lake.InvalidRequestError, match="with 2 rows, but this attempt has 1"):
        orders.commit(prepared(orders, ROWS.slice(1)), commit=identity)


def expire_below(table: lake.Table, oldest: int) -> None:
    storage, layout = table._handle.storage, table._handle.layout
    for snapshot in table.snapshots():
        if snapshot.id < oldest:
            storage.delete(layout.snapshot(snapshot.id))


def test_a_second_time_is_noticed_when_the_history_in_between_has_expired(orders):
    messages = prepared(orders)
    orders.commit(messages)
    for _ in range(3):
        orders.write(ROWS)
    expire_below(orders, 4)
    with pytest.raises(lake.InvalidRequestError, match=r"snapshot 4 .* already has the file"):
        orders.commit(messages)


@pytest.mark.parametrize("oldest", [1, 2])
def test_a_second_time_is_noticed_after_a_compaction_if_the_base_is_unknown(orders, oldest):
    messages = [replace(each, base_snapshot=None) for each in prepared(orders)]
    orders.write(ROWS)
    orders.commit(messages)
    orders.compact(strategy="full")
    expire_below(orders, oldest)
    with pytest.raises(lake.InvalidRequestError, match=r"snapshot 3 .* already has the file"):
        orders.commit(messages)
    with pytest.raises(lake.InvalidRequestError, match="cannot be aborted"):
        orders.abort(messages)
    assert orders.scan().count() == 4


def test_a_long_job_commits_although_the_history_since_it_began_has_expired(orders):
    messages = prepared(orders)
    for _ in range(3):
        orders.write(ROWS)
    expire_below(orders, 3)
    assert orders.commit(messages).snapshot_id == 4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"bucket": 7}, "bucket 7 with 'bucket' = '-1'"),
        ({"total_buckets": 4, "bucket": 4}, "bucket 4 with 'bucket' = '4'"),
    ],
)
def test_a_bucket_the_table_cannot_have_is_refused(orders, change, says):
    [message] = prepared(orders)
    with pytest.raises(lake.InvalidRequestError, match=says):
        orders.commit([replace(message, **change)])


def test_a_schema_the_table_does_not_have_is_refused(orders):
    [message] = prepared(orders)
    newer = replace(message.new_files[0], schema_id=3)
    with pytest.raises(
        lake.InvalidRequestError, match=r"with schema 3, but the newest schema of .* is 0"
    ):
        orders.commit([replace(message, new_files=(newer,))])
    assert orders.latest_snapshot() is None


def test_messages_that_are_given_up_leave_no_file(orders, tmp_path):
    messages = prepared(orders)
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    assert orders.abort(messages) == []
    assert list(tmp_path.rglob("*.parquet")) == []


def test_changelog_files_have_manifests_of_their_own():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, file("a"), changelog_files=[file("c", rows=3)]))
    snapshot = head(orders)
    assert (snapshot.changelog_record_count, snapshot.total_record_count) == (3, 10)
    [manifest] = read_manifest_list(orders.storage, orders.layout, snapshot.changelog_manifest_list)
    entries = entries_in(orders.storage, orders.layout, manifest.file_name)
    assert [entry.file.file_name for entry in entries] == ["c"]
    assert live(orders) == ["a"]


class TestEmptyCommits:
    """A commit without a change makes no snapshot, unless the caller wants one."""

    def test_by_default_a_commit_without_a_change_makes_no_snapshot(self):
        orders = paper_table()
        report = commit(orders)
        assert (report.snapshot_id, head(orders)) == (None, None)

    @pytest.mark.parametrize(
        "options",
        [{"snapshot.ignore-empty-commit": "false"}, {"commit.force-create-snapshot": "true"}],
    )
    def test_one_if_the_table_says_so(self, options):
        orders = paper_table(options=options)
        report = commit(orders, watermark=5)
        assert (report.snapshot_id, report.kind, head(orders).watermark) == (1, "APPEND", 5)
        delta = read_manifest_list(orders.storage, orders.layout, head(orders).delta_manifest_list)
        assert delta == []


def test_statistics_are_a_snapshot_of_their_own_that_changes_no_row():
    orders = paper_table()
    commit(orders, message(orders, file("a")))
    statistics = TableStatistics(snapshot_id=1, schema_id=0, merged_record_count=10)
    report = commit_statistics(orders, statistics, CommitOptions())
    snapshot = head(orders)
    assert (report.kind, snapshot.commit_kind, snapshot.delta_record_count) == ("ANALYZE",) * 2 + (
        0,
    )
    assert (live(orders), snapshot.total_record_count) == (["a"], 10)
    commit(orders, message(orders, file("b")))
    assert head(orders).statistics == snapshot.statistics


OPTIONS = {"row-tracking.enabled": "true"}


class TestRowTracking:
    """Every row has a number of its own, in any order of commits."""

    def first_ids(self, handle) -> dict[str, int]:
        snapshot = head(handle)
        names = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        return {
            entry.file.file_name: entry.file.first_row_id
            for name in names
            for manifest in read_manifest_list(handle.storage, handle.layout, name)
            for entry in entries_in(handle.storage, handle.layout, manifest.file_name)
        }

    def test_files_are_numbered_one_after_the_other(self):
        orders = paper_table(options=OPTIONS)
        commit(orders, message(orders, file("a", rows=3), file("b", rows=2)))
        commit(orders, message(orders, file("c", rows=5)))
        assert self.first_ids(orders) == {"a": 0, "b": 3, "c": 5}
        assert head(orders).next_row_id == 10

    def test_partition_by_partition(self):
        orders = paper_table(partitioned=True, options=OPTIONS)
        commit(
            orders,
            message(orders, file("a", rows=1), dt="1"),
            message(orders, file("b", rows=2), dt="2"),
            message(orders, file("c", rows=4), dt="1"),
        )
        assert self.first_ids(orders) == {"a": 0, "c": 1, "b": 5}

    def test_sequence_numbers_left_open_become_the_snapshots(self):
        orders = paper_table(options=OPTIONS)
        commit(orders, message(orders, file("a")))
        commit(orders, message(orders, file("b")))
        delta = read_manifest_list(orders.storage, orders.layout, head(orders).delta_manifest_list)
        [entry] = entries_in(orders.storage, orders.layout, delta[0].file_name)
        assert (entry.file.min_sequence_number, entry.file.max_sequence_number) == (2, 2)

    def test_the_later_number_alone_may_be_left_open(self):
        orders = paper_table(options=OPTIONS)
        half = replace(file("a"), min_sequence_number=7, max_sequence_number=0)
        commit(orders, message(orders, half))
        [entry] = delta_of(orders, head(orders)).entries(slice(None))
        assert (entry.file.min_sequence_number, entry.file.max_sequence_number) == (7, 1)

    def test_rows_that_were_moved_from_other_files_get_no_new_number(self):
        orders = paper_table(options=OPTIONS)
        commit(orders, message(orders, file("a", level=1), file("b")))
        assert self.first_ids(orders) == {"a": None, "b": 0}
        assert head(orders).next_row_id == 10

    def test_nor_do_rows_that_go(self):
        numbered = paper_table(options=OPTIONS)
        commit(with_options(numbered, {}), message(numbered, file("a")))
        commit(numbered, message(numbered, file("b")), overwrite={})
        assert self.first_ids(numbered) == {"a": None, "b": 0}
        assert head(numbered).next_row_id == 10


class TestTheSameMessageTwice:
    """However the second time comes about, the table has the rows once."""

    def test_by_two_processes_at_once(self, orders):
        messages, storage = prepared(orders), orders._handle.storage
        original = storage.create

        def beaten(path, content):
            storage.create = original
            lake.open_table(orders.location).commit(messages)
            return original(path, content)

        storage.create = beaten
        try:
            with pytest.raises(lake.InvalidRequestError, match="already has the file"):
                orders.commit(messages)
        finally:
            del storage.create
        assert orders.scan().count() == 2

    def test_when_nobody_knows_when_its_writer_began(self, orders):
        [message] = prepared(orders)
        unknown = [replace(message, base_snapshot=None)]
        orders.commit(unknown)
        with pytest.raises(lake.InvalidRequestError, match="already has the file"):
            orders.commit(unknown)

    def test_when_only_a_tag_remembers_the_first(self, orders):
        [message] = prepared(orders)
        unknown = [replace(message, base_snapshot=None)]
        orders.commit(unknown)
        handle = orders._handle
        assert create_tag(handle.storage, handle.layout, Tag("monthly", orders.latest_snapshot()))
        orders.truncate()
        orders.write(ROWS)
        expire_below(orders, 3)
        with pytest.raises(
            lake.InvalidRequestError, match=r"tag 'monthly' of .* already has the file"
        ):
            orders.commit(unknown)

    def test_beside_a_message_that_is_new(self, orders):
        old = prepared(orders)
        orders.commit(old)
        new = prepared(orders)
        with pytest.raises(lake.InvalidRequestError, match=r"snapshot 1 .* already has the file"):
            orders.commit([*new, *old])

    def test_when_the_snapshot_it_began_with_is_of_another_branch(self, orders, tmp_path):
        [message] = prepared(orders)
        schemas = tmp_path / "wh" / "shop.db" / "orders" / "schema"
        shutil.copytree(schemas, schemas.parent / "branch" / "branch-dev" / "schema")
        elsewhere = [replace(message, base_snapshot=9, branch="dev")]
        orders.commit(elsewhere)
        with pytest.raises(lake.InvalidRequestError, match="already has the file"):
            orders.commit(elsewhere)


def test_files_the_table_has_cannot_be_given_up(orders, tmp_path):
    messages = prepared(orders)
    orders.commit(messages)
    with pytest.raises(lake.InvalidRequestError, match="cannot be aborted: snapshot 1 "):
        orders.abort(messages)
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


KEEPS_CHANGELOGS = {
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
    "changelog.num-retained.min": "1",
    "changelog.num-retained.max": "50",
}


def keyed_with_branch(tmp_path, options):
    """A keyed table with rows, and its branch ``dev`` of the first snapshot."""
    catalog = lake.open_catalog(tmp_path / "wh")
    catalog.create_database("shop")
    orders = catalog.create_table(
        "shop.kv", [("id", "BIGINT")], primary_key=["id"], options=options
    )
    orders.write(ROWS)
    orders.branches.create("dev", snapshot=1)
    return orders, catalog.table("shop.kv$branch_dev")


@pytest.mark.parametrize("by", ["main", "dev"])
@pytest.mark.parametrize("kept_by", ["snapshot", "earlier snapshot", "tag", "changelog"])
def test_files_that_a_branch_needs_cannot_be_given_up(tmp_path, kept_by, by):
    options = {"bucket": "1", **(KEEPS_CHANGELOGS if kept_by == "changelog" else {})}
    orders, dev = keyed_with_branch(tmp_path, options)
    messages = prepared(dev, pa.table({"id": [70]}))
    [file] = messages[0].new_files
    dev.commit(messages)
    if kept_by == "tag":
        dev.tags.create("monthly")
    if kept_by != "snapshot":
        dev.compact(strategy="full")
    if kept_by in ("tag", "changelog"):
        dev.expire_snapshots(retain_max=1, retain_min=1)
    table = orders if by == "main" else dev
    with pytest.raises(lake.InvalidRequestError, match=r"cannot be aborted: .* the file") as told:
        table.abort(messages)
    assert f"has the file {file.file_name}: its rows are published" in str(told.value)
    assert [*tmp_path.rglob(file.file_name)]


@pytest.mark.parametrize("kept_by", ["snapshot", "later snapshot", "tag"])
def test_index_files_that_a_branch_needs_cannot_be_given_up(tmp_path, kept_by):
    """After a compaction and an expiry, the branch has the index file, but not the data file."""
    orders, dev = keyed_with_branch(tmp_path, {})
    messages = prepared(dev, pa.table({"id": [70]}))
    [index] = messages[0].new_index_files
    dev.commit(messages)
    dev.compact(strategy="full")
    if kept_by == "tag":
        dev.tags.create("monthly")
        dev.truncate()
    dev.expire_snapshots(retain_max=1, retain_min=1)
    if kept_by == "later snapshot":
        dev.write(pa.table({"id": [71]}))
    with pytest.raises(
        lake.InvalidRequestError, match=r"cannot be aborted: another branch"
    ) as told:
        orders.abort(messages)
    assert f"has the file {index.file_name}: its rows are published" in str(told.value)
    assert [*tmp_path.rglob(index.file_name)]


@pytest.mark.parametrize("kept_by", ["head", "earlier snapshot", "tag"])
def test_index_files_that_the_table_has_cannot_be_given_up(tmp_path, kept_by):
    """Their commit has expired, and a compaction has replaced the data files."""
    catalog = lake.open_catalog(tmp_path / "wh")
    catalog.create_database("shop")
    columns = [("day", "INT"), ("id", "BIGINT")]
    orders = catalog.create_table(
        "shop.kv", columns, primary_key=["day", "id"], partition_by=["day"]
    )
    orders.write(pa.table({"day": [1], "id": [69]}))
    messages = prepared(orders, pa.table({"day": [1], "id": [70]}))
    [index] = messages[0].new_index_files
    orders.commit(messages)
    orders.compact(strategy="full")
    if kept_by == "tag":
        orders.tags.create("monthly")
    orders.write(pa.table({"day": [2], "id": [71]}))
    if kept_by != "head":
        orders.write(pa.table({"day": [1], "id": [72]}))  # replaces the index file
    orders.expire_snapshots(retain_max=2 if kept_by == "earlier snapshot" else 1, retain_min=1)
    with pytest.raises(lake.InvalidRequestError, match=r"cannot be aborted: snapshot \d+") as told:
        orders.abort(messages)
    assert f"has the file {index.file_name}: its rows are published" in str(told.value)
    assert [*tmp_path.rglob(index.file_name)]


def test_giving_up_takes_all_that_was_written_wherever_it_lies(orders, tmp_path):
    """Index files beside data files, and data files outside of the table."""
    [message] = prepared(orders)
    [inside] = tmp_path.rglob("*.parquet")
    beside = inside.with_name("rows.index")
    beside.touch()
    outside = tmp_path / "fast" / "bucket-0" / "away.parquet"
    outside_beside = outside.with_name("away.index")
    marks = tmp_path / "fast" / "bucket-0" / "marks"
    outside.parent.mkdir(parents=True)
    for path in (outside, outside_beside, marks):
        path.touch()
    meta = replace(message.new_files[0], extra_files=("rows.index",))
    away = replace(
        meta,
        file_name="away.parquet",
        external_path=outside.as_uri(),
        extra_files=("away.index",),
    )
    index = replace(vectors(paper_table(), "marks", "away.parquet"), external_path=marks.as_uri())
    everything = replace(message, new_files=(meta, away), new_index_files=(index,))
    assert orders.abort([everything]) == []
    assert [p for p in (inside, beside, outside, outside_beside, marks) if p.exists()] == []


def test_giving_up_a_compaction_leaves_files_that_it_only_moves():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, file("a")))
    path = orders.layout.data_file(0, "a")
    orders.storage.create(path, b"rows")
    up = message(orders, compact_before=[file("a")], compact_after=[moved(file("a"), 5)])
    assert abort_messages(orders, [up]) == []
    assert orders.storage.exists(path)


def test_giving_up_never_leads_out_of_the_bucket(orders):
    orders.write(ROWS)
    [message] = prepared(orders)
    stray = replace(message.new_files[0], file_name="../snapshot/snapshot-1")
    with pytest.raises(lake.CorruptTableError, match="which is not a valid file name"):
        orders.abort([replace(message, new_files=(stray,))])
    assert orders.latest_snapshot().id == 1


def test_an_external_file_of_another_bucket_is_refused(orders, tmp_path):
    [message] = prepared(orders)
    foreign = replace(message.new_files[0], external_path=f"file:{tmp_path}/fast/bucket-3/x")
    with pytest.raises(lake.InvalidRequestError, match="but the address should end with"):
        orders.commit([replace(message, new_files=(foreign,))])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"read_snapshot": "one"}, "'one' is not a position"),
        ({"read_snapshot": 1.5}, "'read_snapshot' must be a snapshot number"),
        ({"read_snapshot": True}, "'read_snapshot' must be a snapshot number"),
        ({"commit": "run"}, "commit must be a CommitId"),
        ({"properties": "abc"}, "properties must map str to str"),
    ],
)
def test_arguments_that_are_none_are_refused_before_anything_is_written(
    orders, tmp_path, arguments, says
):
    with pytest.raises(lake.InvalidRequestError, match=says):
        orders.write(ROWS, **arguments)
    assert list(tmp_path.rglob("*.parquet")) == []


class TestStatistics:
    """A statistics file is inherited as long as its columns are those of the table."""

    def analyze(self, orders, schema_id=0, **options):
        statistics = TableStatistics(snapshot_id=1, schema_id=schema_id)
        return commit_statistics(orders, statistics, CommitOptions(**options))

    def test_not_if_they_were_made_of_other_columns(self):
        orders = paper_table()
        commit(orders, message(orders, file("a")))
        self.analyze(orders, schema_id=7)
        commit(orders, message(orders, file("b")))
        assert head(orders).statistics is None

    def test_repeating_an_analysis_leaves_no_second_file(self):
        orders = paper_table()
        commit(orders, message(orders, file("a")))
        identity = lake.CommitId("run", 1)
        self.analyze(orders, commit=identity)
        assert self.analyze(orders, commit=identity).replayed
        files = [path for path in orders.storage.files() if "/statistics/" in path]
        assert len(files) == 1


class Refuses(MemoryStorage):
    """Publishes nothing any more; ``error`` is certain or unknown."""

    error: lake.LakeError | None = None

    def create(self, path, content):
        if self.error is not None and "snapshot-" in path:
            raise self.error
        return super().create(path, content)


class TestAFailedAnalysis:
    """Its statistics file is kept exactly as long as the table may refer to it."""

    def failed(self, error: lake.LakeError) -> list[str]:
        """The statistics files that are there after a failure."""
        storage = Refuses(f"refuses-{id(self)}")
        orders = paper_table(storage=storage)
        commit(orders, message(orders, file("a")))
        storage.error = error
        with pytest.raises(lake.LakeError):
            commit_statistics(orders, TableStatistics(1, 0), CommitOptions())
        return [path for path in storage.files() if "/statistics/" in path]

    def test_in_doubt_it_stays(self):
        assert len(self.failed(lake.UnavailableError("no answer"))) == 1

    def test_if_it_is_certain_it_goes(self):
        assert self.failed(lake.LockUnavailableError("held by somebody else")) == []


def test_properties_are_found_in_the_snapshot():
    orders = paper_table()
    commit(orders, message(orders, file("a")), properties={"job": "nightly"})
    assert head(orders).properties == {"job": "nightly"}


def test_a_table_that_numbers_its_rows_does_not_let_files_be_rewritten():
    orders = paper_table(options=OPTIONS)
    commit(orders, message(orders, file("a")))
    with pytest.raises(lake.UnsupportedError, match="tracks row ids"):
        commit(orders, message(orders, compact_before=[file("a")], compact_after=[file("b")]))
