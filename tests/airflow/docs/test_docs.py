"""The examples of the pages about Airflow are DAGs that import; the policy of a page is read."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_lake.maintenance.policy import STEPS, read_policy
from tests.airflow.conftest import TEST_DAGS
from tests.airflow.decorators.test_decorators import result_of
from tests.airflow.versions import AIRFLOW

DOCS = Path(__file__).resolve().parents[3] / "docs"


def blocks(page, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", (DOCS / page).read_text(), re.M | re.S)


def as_in_this_airflow(example):
    """Replace the import of deadlines as the page shows for Airflow 3.1."""
    if AIRFLOW.release >= (3, 2):
        return example
    [instead] = re.findall(r"On Airflow 3\.1 write `(.*?)`", (DOCS / "recipes.md").read_text())
    names = instead.partition(" import ")[2]
    return example.replace(f"sdk import DAG, {names}", f"sdk import DAG\n{instead}")


@pytest.mark.parametrize(
    "page", ["sensors.md", "assets.md", "templates.md", "recipes.md", "kubernetes.md"]
)
def test_each_example_is_a_dag_that_imports(airflow_db, page, tmp_path):
    from tests.airflow.versions import DagBag

    examples = blocks(page, "python")
    for number, text in enumerate(map(as_in_this_airflow, examples)):
        (tmp_path / f"example_{number}.py").write_text(text)

    bag = DagBag(str(tmp_path))

    assert bag.import_errors == {}
    assert len(bag.dags) == len(examples) > 0


def test_the_first_example_about_assets_runs_by_hand(airflow_db, orders):
    """A manual run before any event of the watcher reads up to the head."""
    from tests.airflow.versions import DagBag

    dag = DagBag(str(TEST_DAGS / "assets_page.py")).dags["count_orders"]
    orders.write(pa.table({"id": [1, 2], "item": ["apple", "pear"]}))

    def counted():
        run = dag.test()
        assert run.state == "success"
        return result_of(run, "count_new_orders")

    assert [counted(), counted()] == [2, 0]
    orders.write(pa.table({"id": [3], "item": ["plum"]}))
    assert counted() == 1


def test_the_recipe_for_duplicates_deletes_them(airflow_db, catalog):
    """The second task finds the condition and the position that the first one returns."""
    from tests.airflow.versions import DagBag

    columns = [("id", "BIGINT"), ("email", "STRING")]
    people = catalog.create_table("shop.people", columns, primary_key=["id"])
    people.write(pa.table({"id": [1, 2, 3, 4], "email": ["x", "y", "x", None]}))

    run = DagBag(str(TEST_DAGS / "duplicates_page.py")).dags["remove_duplicates"].test()

    assert run.state == "success"
    assert sorted(people.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == [1, 2, 4]


def test_the_policy_of_the_page_means_what_it_says(tmp_path):
    (tmp_path / "lake.yaml").write_text(*blocks("templates.md", "yaml"))

    clicks, orders = read_policy(tmp_path / "lake.yaml").tables

    assert (orders.schedule, orders.pool, [*orders.steps]) == (
        "@hourly",
        "lake",
        ["compact", "expire_snapshots"],
    )
    assert [*clicks.steps] == ["expire_partitions", "compact"]


def test_tables_have_the_shares_of_the_page(airflow_db, tmp_path):
    from tests.airflow.versions import DagBag

    [example] = [each for each in blocks("templates.md", "python") if "QUOTAS" in each]
    (tmp_path / "shares.py").write_text(example)
    [dag] = DagBag(str(tmp_path)).dags.values()
    shares = {
        task.partial_kwargs["table"]: (
            task.pool,
            task.max_active_tis_per_dagrun,
            task.priority_weight,
        )
        for task in dag.tasks
    }
    assert shares == {"shop.orders": ("lake", 3, 75), "shop.clicks": ("lake", 1, 25)}
    assert dag.max_active_runs == 1  # the limit of a run is then that of the table


def test_the_page_names_every_step_with_its_arguments():
    text = (DOCS / "templates.md").read_text()
    for step, arguments in STEPS.items():
        [row] = [line for line in text.splitlines() if line.startswith(f"| `{step}` |")]
        assert {*arguments} <= {*re.findall(r"`(\w+)`", row)}


def test_every_template_is_on_the_page():
    text = (DOCS / "templates.md").read_text()
    assert [path.name for path in DOCS.parent.glob("dags/*.py") if path.name not in text] == []


@pytest.mark.parametrize(
    ("row", "package"),
    [
        ("Apache Airflow", "apache-airflow"),
        ("Airflow's Spark provider", "apache-airflow-providers-apache-spark"),
        ("Airflow's OpenLineage provider", "apache-airflow-providers-openlineage"),
        ("Spark", "pyspark"),
        ("pyarrow", "pyarrow"),
        ("numpy", "numpy"),
        ("pandas", "pandas"),
        ("pypaimon", "pypaimon"),
    ],
)
def test_the_table_of_versions_says_what_tests_run_with(row, package):
    text = "".join(
        (DOCS.parent / "requirements" / f"{name}.txt").read_text()
        for name in ("tested", "pypaimon")
    )
    version = re.search(rf"^{package}==(\S+)", text, re.M)[1]
    lines = (DOCS / "compatibility.md").read_text().splitlines()
    [line] = [each for each in lines if re.match(rf"\| {row}\b[^|]*\|", each)]
    assert line.endswith(f"| {version} |")
