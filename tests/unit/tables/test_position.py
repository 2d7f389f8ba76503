"""Positions: an order within one branch of one table, a text that is read again, old cursors."""

import json
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.tables.position import Position

names = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=12)
positions = st.builds(
    Position,
    st.lists(st.integers(0, 2**63), min_size=1, max_size=2).map(tuple),
    st.none() | names,
    st.none() | names,
)


@given(positions)
def test_the_text_of_a_position_is_read_as_the_same_position(position):
    again = Position.parse(json.loads(json.dumps(str(position))))
    assert again.is_exactly(position)
    assert (again.branch, hash(again)) == (position.branch, hash(position))


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1), names)
def test_positions_of_one_branch_have_the_order_of_their_numbers(numbers, branch):
    found = sorted(Position(each, branch) for each in numbers)
    assert [each.numbers for each in found] == sorted(numbers)


@given(st.integers(1, 2**63))
def test_nothing_lies_between_a_position_and_the_one_before(number):
    position = Position((number,), "main", "a")
    assert position.before < position
    assert position.before == number - 1
    assert position.before.identity is None


def test_before_the_beginning_is_the_beginning():
    assert Position((0,)).before == 0


@pytest.mark.parametrize(
    ("kept", "position"),
    [
        (7, Position((7,))),
        ("7", Position((7,))),
        ({"snapshot_id": 7, "identity": "a:b-c"}, Position((7,), identity="a:b-c")),
        ({"snapshot_id": 7, "identity": None}, Position((7,))),
        ({"snapshot_id": 7, "previous_snapshot_id": 3, "rows": 1}, Position((7,))),
        ({"next_snapshot": 8, "full_snapshot": None, "after": "u"}, Position((7,), identity="u")),
        ({"nextSnapshot": 8}, Position((7,))),
        ({"position": "dev/7@u"}, Position((7,), "dev", "u")),
        ({"snapshot_id": 7, "position": "main/7@u"}, Position((7,), "main", "u")),
    ],
)
def test_what_earlier_versions_kept_is_read(kept, position):
    assert Position.parse(kept).is_exactly(position)
    assert Position.parse(kept).branch == position.branch


@pytest.mark.parametrize(
    "kept", [None, True, -1, 1.5, "", "x", "-1", "7@", {}, {"snapshot_id": "7"}, [7], b"7", "٧"]
)
def test_anything_else_is_refused(kept):
    with pytest.raises(lake.InvalidRequestError, match="is not a position: give a snapshot number"):
        Position.parse(kept)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Position((1,), "main"), Position((2,), "dev")),
        (Position((1,), table="a"), Position((2,), table="b")),
        (Position((1,)), Position((1, 2))),
    ],
)
def test_positions_of_two_histories_do_not_compare(one, other):
    with pytest.raises(lake.InvalidRequestError, match="are of different histories"):
        assert one < other
    assert one != other


def test_a_position_survives_pickle_and_compares_with_numbers():
    position = pickle.loads(pickle.dumps(Position((3,), "main", "u", "here")))
    assert (position, position > 2, position < 4, position == 3) == (position, True, True, True)
    assert {position} == {3}


@pytest.fixture
def orders(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog.create_table("shop.orders", [("id", "BIGINT")])


def write(table, *numbers):
    for number in numbers:
        table.write(pa.table({"id": [number]}))


def test_a_table_knows_its_position_and_takes_it_where_it_takes_numbers(orders):
    assert orders.position() == 0
    write(orders, 1, 2, 3)
    second = orders.position(2)
    assert orders.position() == orders.latest_snapshot().position == 3
    assert orders.scan(snapshot=second).to_arrow()["id"].to_pylist() == [1, 2]
    changes = orders.changes(after=second, upto=orders.position())
    assert changes.to_arrow()["id"].to_pylist() == [3]
    assert [each.id for each in orders.snapshots(after=second)] == [3]
    orders.tags.create("two", snapshot=second)
    orders.consumers.set("job", after=second)
    [consumer] = orders.consumers.list()
    assert (consumer.next_snapshot, consumer.position) == (3, second)
    orders.rollback(snapshot=second)
    assert orders.scan().to_arrow()["id"].to_pylist() == [1, 2]


def test_since_tells_what_was_missed_and_what_was_rolled_back(orders):
    write(orders, 1, 2, 3)
    first, third = (snapshot.position for snapshot in orders.snapshots()[::2])
    since = orders.since(first)
    assert ([each.id for each in since.snapshots], since.missed, since.rewound) == (
        [2, 3],
        False,
        False,
    )
    assert [each.id for each in orders.since(first, orders.position(2)).snapshots] == [2]
    orders.expire_snapshots(retain_max=1, retain_min=1)
    assert orders.since(first).missed
    assert orders.since(first, 2).missed  # although the range has no snapshot any more
    assert orders.since(9).rewound

    write(orders, 4)
    orders.rollback(snapshot=3, as_latest=False)
    assert not orders.since(third).rewound
    assert orders.since(4).rewound


def test_a_number_that_a_rollback_gave_to_another_snapshot_is_noticed(orders):
    write(orders, 1, 2)
    second = orders.position()
    orders.rollback(snapshot=1, as_latest=False)
    write(orders, 3)
    assert orders.position() == second
    assert not orders.position().is_exactly(second)
    assert orders.since(second).rewound


def test_a_position_of_a_branch_is_refused_by_the_table_and_by_other_tables(orders, tmp_path):
    write(orders, 1)
    orders.branches.create("dev", snapshot=1)
    catalog = lake.open_catalog(str(tmp_path))
    branch = catalog.table("shop.orders$branch_dev")
    write(branch, 2)
    assert str(branch.position()).startswith("dev/2@")
    with pytest.raises(lake.InvalidRequestError, match=r"branch 'dev'.* of different histories"):
        orders.changes(after=branch.position())
    with pytest.raises(lake.InvalidRequestError, match="of different histories"):
        orders.position(str(branch.position()))

    other = catalog.create_table("shop.items", [("id", "BIGINT")])
    with pytest.raises(lake.InvalidRequestError, match="of different histories"):
        other.snapshots(after=orders.position())


def test_a_kept_position_outlives_the_renaming_of_its_table(orders, tmp_path):
    write(orders, 1, 2)
    kept = str(orders.position(1))
    catalog = lake.open_catalog(str(tmp_path))
    catalog.rename_table("shop.orders", "shop.sales")
    sales = catalog.table("shop.sales")
    assert [each.id for each in sales.since(sales.position(kept)).snapshots] == [2]


def test_positions_are_listed_without_reading_and_advanced_by_snapshots(orders):
    write(orders, 1, 2, 3, 4)
    assert orders.positions(limit=2) == [3, 4]
    assert orders.positions(after=1, upto=3, limit=9) == [2, 3]
    assert orders.positions(after=3, upto=3, limit=9) == []
    assert orders.advance(orders.position(1), 2) == 3
    assert orders.advance(orders.position(3), 2) == 4
    assert orders.advance(0) == 4
