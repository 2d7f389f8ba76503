"""The page about operators runs as it is printed: each of them does its work on one table."""

import lakeformat as lake
from airflow_provider_lake.provider_info import get_provider_info
from tests.airflow.conftest import TEST_DAGS


def test_every_operator_of_the_page_does_its_work(airflow_db, tmp_path, warehouse, monkeypatch):
    from tests.airflow.versions import DagBag

    folder = tmp_path / "incoming" / "orders"
    folder.mkdir(parents=True)
    (folder / "part-1.csv").write_text("id,dt,item\n1,2024-01-01,apple\n2,2024-01-02,pear\n")
    monkeypatch.chdir(tmp_path)
    bag = DagBag(str(TEST_DAGS / "operators_page.py"))
    assert bag.import_errors == {}
    dag = bag.dags["orders_from_a_to_z"]
    [listed] = get_provider_info()["operators"]
    assert {type(task).__module__ for task in dag.tasks} == set(listed["python-modules"])

    run = dag.test()

    assert run.state == "success"
    orders = lake.open_catalog(warehouse).table("shop.orders")
    assert sorted(orders.scan().to_arrow()["item"].to_pylist()) == ["apple", "pear"]
    assert len(orders.tags.list()) == 1
