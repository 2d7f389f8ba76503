"""The DAG of the README runs as it is printed there."""

from datetime import UTC, datetime

import lakeformat as lake
from tests.airflow.conftest import TEST_DAGS


def test_the_readme_s_dag_lands_each_file_once(airflow_db, tmp_path, warehouse, monkeypatch):
    from tests.airflow.versions import DagBag

    folder = tmp_path / "incoming" / "orders"
    folder.mkdir(parents=True)
    (folder / "part-1.csv").write_text("id,item\n1,apple\n")
    monkeypatch.chdir(tmp_path)
    bag = DagBag(str(TEST_DAGS))
    assert bag.import_errors == {}

    def items(day):
        run = bag.dags["shop"].test(logical_date=datetime(2024, 1, day, tzinfo=UTC))
        assert run.state == "success"
        orders = lake.open_catalog(warehouse).table("shop.orders")
        return orders.scan().to_arrow()["item"].to_pylist()

    assert items(day=30) == ["apple"]
    assert items(day=31) == ["apple"], "a second day ingests no file again"
    (folder / "part-2.csv").write_text("id,item\n2,pear\n")
    assert items(day=31) == ["apple", "pear"]
