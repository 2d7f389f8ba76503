"""Changes between snapshots: as they were written, from the changelog, or by comparing states."""

from __future__ import annotations

import json
import pickle
from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.paimon.read.equal_rows import equal_values
from tests import sampling
from tests.conformance.format_checklist.keyed_table import DELETE, UPDATE_AFTER, KeyedTable
from tests.keyed_rows import KeyedRows, listed

A, B, NEW_A, NO_B = ("+I", 1, "a"), ("+I", 2, "b"), ("+I", 1, "A"), ("-D", 2, "b")


@pytest.fixture
def table() -> KeyedRows:
    table = KeyedRows()
    table.commit(A, B)
    table.commit(NEW_A)
    table.commit(NO_B)
    return table


@pytest.mark.parametrize(
    ("window", "rows"),
    [
        ((0, 1), [A, B]),
        ((1, 3), [NEW_A, NO_B]),
        ((1, 2), [NEW_A]),
        ((2, 3), [NO_B]),
        ((2,), [NO_B]),
        ((0,), [A, B, NEW_A, NO_B]),
        ((3, 3), []),
        ((1, 3, "delta"), [NEW_A, NO_B]),
        ((1, 3, "diff"), [NEW_A]),
        ((0, 3, "diff"), [NEW_A]),
        ((3, 3, "diff"), []),
        (("main/1", "main/2"), [NEW_A]),
    ],
)
def test_a_window_is_open_on_the_left_and_closed_on_the_right(table, window, rows):
    assert listed(table.table.changes(*window)) == rows


def minutes(count: float) -> datetime:
    return datetime(1970, 1, 1) + timedelta(minutes=count)


@pytest.mark.parametrize(
    ("after", "upto", "rows"),
    [
        (minutes(1), minutes(3), [NEW_A, NO_B]),
        (minutes(1.5), minutes(2.5), [NEW_A]),
        (minutes(0), minutes(1), [A, B]),
        (minutes(0), minutes(99), [A, B, NEW_A, NO_B]),
        (minutes(0), minutes(0.5), []),
        (minutes(50), minutes(99), []),
        (minutes(2), None, [NO_B]),
    ],
)
def test_a_window_of_times_has_the_commits_of_that_time(table, after, upto, rows):
    assert listed(table.table.changes(after, upto)) == rows


def test_two_tags_are_compared_even_after_their_snapshots_have_expired(table):
    table.commit(("+I", 1, "x"))
    table.commit(("+I", 4, "d"))
    table.tag("t1", 1)
    table.tag("t2", 5)
    table.expire(1)
    assert table.table.changes("t1", "t2").mode == "diff"
    assert listed(table.table.changes("t1", "t2")) == [("+I", 1, "x"), ("+I", 4, "d")]
    assert listed(table.table.changes("t1", "t2", "delta"))[-1] == ("+I", 4, "d")


@pytest.mark.parametrize(
    ("window", "error", "told"),
    [
        (
            (1, 4),
            lake.NotFoundError,
            "the table has the changes of snapshots 1 to 3, so 'after' must be at least 0 and "
            "'upto' at most 3",
        ),
        ((4, 5), lake.NotFoundError, "snapshots 1 to 3"),
        ((4,), lake.NotFoundError, "snapshots 1 to 3"),
        (
            (3, 1),
            lake.InvalidRequestError,
            "ends before it starts: 'after' is snapshot 3 and 'upto' is snapshot 1",
        ),
        (
            (3, 1, "diff"),
            lake.InvalidRequestError,
            "ends before it starts: 'after' is snapshot 3 and 'upto' is snapshot 1",
        ),
        ((-1, 1), lake.InvalidRequestError, "'after' must be a snapshot number"),
        ((1, 2.5), lake.InvalidRequestError, "'upto' must be a snapshot number"),
        ((1, "v9"), lake.NotFoundError, "the table has no tag"),
        (
            (1, 2, "nix"),
            lake.InvalidRequestError,
            "mode must be one of auto, delta, changelog, diff",
        ),
        ((1, 2, "changelog"), lake.InvalidRequestError, "keeps no changelog"),
        ((1, 9, "diff"), lake.NotFoundError, "snapshots 1 to 3 exist"),
    ],
)
def test_a_window_that_is_not_there_is_refused_with_what_is(table, window, error, told):
    with pytest.raises(error, match=told):
        table.table.changes(*window)


def test_changes_of_expired_snapshots_are_refused_and_never_left_out(table):
    table.expire(1)
    with pytest.raises(
        lake.NotFoundError, match="snapshots 2 to 3, so 'after' must be at least 1 and"
    ):
        table.table.changes(0)
    with pytest.raises(lake.NotFoundError, match=r"the state of .* has expired"):
        table.table.changes(minutes(0), 3, "diff")
    assert listed(table.table.changes(1)) == [NEW_A, NO_B]


def test_a_table_without_snapshot_has_no_changes():
    table = KeyedRows().table
    assert listed(table.changes(0)) == listed(table.changes(0, mode="diff")) == []
    with pytest.raises(lake.NotFoundError, match="no snapshot yet"):
        table.changes(0, 1)


def test_columns_and_conditions_choose_among_changes(table):
    changes = table.table.changes
    assert listed(changes(0, columns=["v"], where="k = 1")) == [("+I", "a"), ("+I", "A")]
    assert listed(changes(0, where="rowkind = '-D'")) == [NO_B]
    assert listed(changes(0, 2, "diff", columns=["v"], where=lake.col("k") > 1)) == [("+I", "b")]
    assert changes(0).count() == 4
    assert changes(0).to_pandas()["rowkind"].tolist() == ["+I", "+I", "+I", "-D"]
    assert changes(0).to_polars().columns == ["rowkind", "k", "v"]
    with pytest.raises(lake.InvalidRequestError, match="columns must name some of k, v"):
        changes(0, columns=["nix"])


@pytest.mark.parametrize("keyed", [True, False])
def test_kinds_alone_are_as_many_as_there_are_rows(keyed):
    table = KeyedRows(keyed=keyed)
    table.commit(A, B)
    log = table.catalog.table("shop.t$audit_log")
    for rows in (table.table.changes(0, columns=["rowkind"]), log.scan(["rowkind"])):
        assert listed(rows) == [("+I",), ("+I",)]


def test_an_append_table_has_its_new_rows():
    table = KeyedRows(keyed=False)
    table.commit(A)
    table.commit(B)
    assert listed(table.table.changes(1)) == [B]
    table.table.write(pa.table({"k": pa.array([9], pa.int32()), "v": ["z"]}), overwrite={})
    assert listed(table.table.changes(1)) == [B]  # an overwrite is no change of rows
    with pytest.raises(
        lake.InvalidRequestError, match=r"by primary key, and .* has none\. .*Use mode='delta'"
    ):
        table.table.changes(1, 2, "diff")
    with pytest.raises(lake.InvalidRequestError, match=r"as they were written$"):
        table.table.changes(1, 2, "changelog")  # the other mode is not for such tables


def test_an_input_changelog_is_read_as_it_came_in():
    table = KeyedRows({"changelog-producer": "input"})
    table.commit(A, ("-U", 1, "a"), ("+U", 1, "A"))
    table.commit(("-D", 1, "A"))
    changes = table.table.changes(0)
    assert changes.mode == "changelog"
    assert listed(changes) == [A, ("-U", 1, "a"), ("+U", 1, "A"), ("-D", 1, "A")]
    assert listed(table.table.changes(0, 1, "delta")) == [("+U", 1, "A")]


@pytest.mark.parametrize("producer", ["none", "input"])
@pytest.mark.parametrize("mode", ["auto", "diff"])
def test_parts_that_can_be_sent_elsewhere_have_the_rows_in_their_order(tmp_path, producer, mode):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.t",
        [("k", "INT"), ("v", "STRING")],
        primary_key=["k"],
        options={"bucket": "4", "changelog-producer": producer},
    )
    for number in range(3):
        table.write(pa.table({"k": pa.array(range(20), pa.int32()), "v": [f"{number}"] * 20}))
    changes = table.changes(1, 3, mode, columns=["k", "v"], where="k < 18")

    parts = pickle.loads(pickle.dumps(changes.parts()))

    assert len(parts) == (4 if mode == "diff" else 8)
    assert all(part.size_bytes > 0 for part in parts)
    assert [row for part in parts for row in listed(part)] == listed(changes)


def test_buckets_that_are_the_same_in_both_states_are_no_part():
    table = KeyedRows({"bucket": "4"})
    table.commit(*(("+I", key, "a") for key in range(20)))
    table.commit(("+I", 3, "b"))
    [part] = table.table.changes(1, 2, "diff").parts()
    assert listed(part) == [("+I", 3, "b")]
    assert table.table.changes(2, 2, "diff").parts() == []


def test_changes_of_a_branch_are_its_own(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", [("k", "INT")])
    table.write(pa.table({"k": [1]}).cast(table.schema.arrow_schema()))
    root, dev = tmp_path / "shop.db" / "t", tmp_path / "shop.db" / "t" / "branch" / "branch-dev"
    for kind, name in (("schema", "schema-0"), ("snapshot", "snapshot-1")):
        (dev / kind).mkdir(parents=True)
        (dev / kind / name).write_bytes((root / kind / name).read_bytes())
    for name, key in (("shop.t", 2), ("shop.t$branch_dev", 3)):
        held = catalog.table(name)
        held.write(pa.table({"k": [key]}).cast(table.schema.arrow_schema()))
    assert listed(catalog.table("shop.t").changes(1)) == [("+I", 2)]
    assert listed(catalog.table("shop.t$branch_dev").changes(1)) == [("+I", 3)]
    assert listed(catalog.table("shop.t$branch_dev").scan(as_of="2100-01-01")) == [(1,), (3,)]


def compacted(root) -> KeyedTable:
    """A state of one file, then the same rows in another file of the highest level and one new."""
    table = KeyedTable(str(root), (("k", "INT NOT NULL"), ("v", "STRING")), ["k"], {"bucket": "1"})
    table.commit(table.write([{"k": 1, "v": "a"}, {"k": 2, "v": "b"}]))
    table.commit(table.write([{"k": 1, "v": "a"}, {"k": 2, "v": "b"}], level=5))
    table.commit(table.write([{"k": 2, "v": "c", "kind": UPDATE_AFTER}, {"k": 1, "kind": DELETE}]))
    return table


def test_files_above_level_zero_are_no_delta(tmp_path):
    table = compacted(tmp_path / "t").open()
    assert listed(table.changes(1, 2)) == []
    assert listed(table.changes(2, 3)) == [("-D", 1, None), ("+U", 2, "c")]


def test_rows_that_a_compaction_moved_are_no_difference(tmp_path):
    table = compacted(tmp_path / "t").open()
    assert listed(table.changes(1, 3, "diff")) == [("+U", 2, "c")]


def test_what_a_rollback_has_brought_back_is_a_difference(table):
    """The file with the old value always existed; the deleted file hid it."""
    table.table.rollback(snapshot=1)
    assert listed(table.table.changes(3, 4, "diff")) == [A, B]
    assert listed(table.table.changes(1, 4, "diff")) == []


def test_rows_that_are_marked_otherwise_are_a_difference():
    """Both states have the same file, and one of its rows is deleted."""
    table = KeyedRows({"deletion-vectors.enabled": "true"})
    table.commit(A, B)
    table.table.compact()
    table.commit(NO_B)
    without_b = table.table.compact(strategy="minor").snapshot_ids[-1]
    table.table.rollback(snapshot=2)
    table.commit(("-D", 1, "a"))
    table.table.compact(strategy="minor")
    assert listed(table.table.changes(without_b, mode="diff")) == [B]
    audit = table.catalog.table("shop.t$audit_log").changes(without_b, mode="diff")
    assert sorted(listed(audit)) == [B, ("-D", 1, "a")]


def test_states_with_other_buckets_are_not_compared(tmp_path):
    table = compacted(tmp_path / "t")
    table.commit(table.write([{"k": 7, "v": "z"}], total_buckets=2))
    with pytest.raises(lake.UnsupportedError, match="has 1 and 2 buckets in the two snapshots"):
        table.open().changes(1, 4, "diff").count()


@pytest.mark.parametrize("key", range(6))
def test_states_whose_rows_are_in_other_buckets_are_not_compared(key):
    """Neither state need have a file in a bucket of the other."""
    table = KeyedRows({"bucket": "3"})
    table.commit(("+I", key, "a"))
    table.catalog.alter_table("shop.t", lake.set_option("bucket", "1"))
    table.catalog.table("shop.t").rescale()
    with pytest.raises(lake.UnsupportedError, match="has 1 and 3 buckets in the two snapshots"):
        table.catalog.table("shop.t").changes(1, 2, "diff").count()


def test_the_partition_with_other_buckets_is_named(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    columns = [("day", "STRING NOT NULL"), ("k", "INT NOT NULL")]
    key = {"primary_key": ["day", "k"], "partition_by": ["day"], "options": {"bucket": "2"}}
    table = catalog.create_table("shop.t", columns, **key)
    table.write(pa.table({"day": ["mon"], "k": pa.array([1], pa.int32())}))
    catalog.table("shop.t").rescale(bucket=1)
    with pytest.raises(lake.UnsupportedError, match=r"^partition day=mon of .*t has 1 and 2 bucke"):
        catalog.table("shop.t").changes(1, 2, "diff").count()


def test_a_snapshot_that_lives_on_as_changelog_is_read_for_its_changes(table):
    storage, layout = table.place
    content = storage.read(layout.snapshot(1))
    storage.overwrite(layout.changelog(1), content)
    table.expire(1)
    assert json.loads(content)["id"] == 1
    assert listed(table.table.changes(0, 2)) == [A, B, NEW_A]


WRITES = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["+I", "-D"]), st.integers(0, 4), st.sampled_from("ab")),
        min_size=1,
        max_size=4,
    ),
    min_size=2,
    max_size=5,
)


@settings(max_examples=sampling.count(8, whole=40))
@given(WRITES, st.data())
def test_a_difference_leads_from_one_state_to_the_other(commits, data):
    """The difference may include unchanged rows; with deletions it is exact."""
    table = KeyedRows()
    states = [{}]
    for rows in commits:
        table.commit(*rows)
        state = dict(states[-1])
        for kind, key, value in rows:
            state.pop(key, None)
            if kind == "+I":
                state[key] = value
        states.append(state)
    first = data.draw(st.integers(0, len(commits) - 1))
    before, after = states[first], states[-1]
    found = {key: value for _, key, value in listed(table.table.changes(first, mode="diff"))}
    differs = {k: v for k, v in after.items() if before.get(k) != v}
    assert differs.items() <= found.items() <= after.items()
    audit = table.catalog.table("shop.t$audit_log").changes(first, mode="diff")
    gone = {("-D", k, v) for k, v in before.items() if k not in after}
    assert set(listed(audit)) == gone | {("+I", k, v) for k, v in differs.items()}


VALUES = st.recursive(
    st.none() | st.integers(-2, 2), lambda inner: st.lists(inner, max_size=3), max_leaves=6
)
NESTED = pa.list_(
    pa.struct([("a", pa.int32()), ("b", pa.map_(pa.string(), pa.list_(pa.float64())))])
)
PARTS = st.none() | st.fixed_dictionaries(
    {
        "a": st.none() | st.integers(0, 1),
        "b": st.none()
        | st.lists(
            st.tuples(
                st.sampled_from("xy"),
                st.none() | st.lists(st.sampled_from([None, 0.0, float("nan")]), max_size=2),
            ),
            max_size=2,
        ),
    }
)
ROWS = st.none() | st.lists(PARTS, max_size=2)


@given(st.lists(st.tuples(ROWS, ROWS), max_size=6), st.integers(0, 2))
def test_nested_values_are_equal_when_all_their_parts_are(pairs, skipped):
    left = pa.array([pair[0] for pair in pairs], NESTED).slice(skipped)
    right = pa.array([pair[1] for pair in pairs], NESTED).slice(skipped)
    sides = zip(left.to_pylist(), right.to_pylist(), strict=True)
    expected = [repr(one) == repr(other) for one, other in sides]
    assert equal_values(left, right).tolist() == expected
    assert equal_values(left, left).all()
