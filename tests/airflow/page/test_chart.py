"""The chart of a table has a bar for each of its newest snapshots."""

from types import SimpleNamespace

import pytest

from airflow_provider_lake.page.chart import HEIGHT, bars
from tests.airflow.page.pages import Words, words, write


def snapshots(*records):
    """Snapshots with these numbers of records, newest first."""
    return [SimpleNamespace(total_record_count=count) for count in records]


def test_the_highest_bar_is_the_newest_and_the_oldest_stands_first():
    found = bars(snapshots(100, 50, 25))

    assert [bar.height for bar in found] == [HEIGHT / 4, HEIGHT / 2, HEIGHT]
    assert [bar.x for bar in found] == [0, 10, 20]
    assert {bar.y + bar.height for bar in found} == {HEIGHT}


@pytest.mark.parametrize("records", [(), (5, 5), (0, 0, 0)])
def test_too_little_is_not_drawn(records):
    assert bars(snapshots(*records)) == []


def test_a_state_without_records_is_a_line():
    assert [bar.height for bar in bars(snapshots(0, 7, -3))] == [1, HEIGHT, 1]


def test_each_bar_leads_to_its_snapshot(ask, orders):
    for number in range(3):
        write(orders, number)
    orders.compact()

    answer = ask("/lake/table/lake_default?name=shop.orders")

    drawn = [attrs["class"] for tag, attrs in Words(answer.text).tags if tag == "rect"]
    assert drawn == ["append", "append", "append", "compact"]
    assert "Snapshot 2: 2 rows" in words(answer)
    assert answer.text.count("/lake/snapshot/lake_default?name=shop.orders&amp;number=2") == 2
