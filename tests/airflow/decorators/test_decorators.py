"""Functions as tasks: they get their table open, and what they return is committed once."""

from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from airflow.sdk import DAG, Asset, Metadata, task

import lakeformat as lake
from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.decorators.lake_commit import LakeFunctionCommit
from airflow_provider_lake.jobs.failures import LakeTaskKilled
from airflow_provider_lake.jobs.job import own_keys
from airflow_provider_lake.provider_info import get_provider_info
from tests.airflow.conftest import TEST_DAGS
from tests.airflow.contexts import task_context
from tests.airflow.versions import AirflowFailException, AirflowSkipException

ORDERS = [("id", "BIGINT"), ("item", "STRING")]
ROWS = [{"id": 1, "item": "apple"}, {"id": 2, "item": "pear"}]


def made(decorated, *args, **named):
    """The operator of one call."""
    return decorated(*args, **named).operator


def do(decorated, *args, context=None, **named):
    return made(decorated, *args, **named).execute(context or task_context())


def committed(function, **arguments):
    return task.lake_commit(**{"table": "shop.orders", **arguments})(function)


def rows_of(table):
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


# What a function gets


def test_airflow_finds_both_by_their_names():
    for each in get_provider_info()["task-decorators"]:
        module, _, name = each["class-name"].rpartition(".")
        assert getattr(task, each["name"]) is getattr(import_module(module), name)


def test_a_job_gets_its_table_open_and_returns_what_it_likes(orders):
    orders.write(pa.Table.from_pylist(ROWS))

    @task.lake_job(table="shop.orders")
    def count(table, factor, ti):
        return {"rows": table.scan().count() * factor, "task": ti.task_id}

    assert do(count, factor=10) == {"rows": 20, "task": "work"}


@pytest.mark.parametrize(
    "call",
    [{"args": ["shop.orders"]}, {"named": {"table": "shop.orders"}}],
    ids=["by position", "by name"],
)
def test_the_call_may_name_the_table(orders, call):
    @task.lake_job
    def name_of(table, more="?"):
        return f"{table.location.rpartition('/')[2]}{more}"

    assert do(name_of, *call.get("args", ()), **call.get("named", {})) == "orders?"


def test_other_arguments_may_stand_by_their_place(orders):
    @task.lake_job
    def names(table, first, second="none"):
        return [first, second]

    assert do(names, "shop.orders", "one") == ["one", "none"]


def test_a_table_that_is_named_takes_no_place_in_the_call(orders):
    @task.lake_job(table="shop.orders")
    def names(table, first, /, second="none"):
        return [first, second]

    @task.lake_job(table="shop.orders")
    def by_name(table, first, *, second):
        return [first, second]

    @task.lake_job(table="shop.orders")
    def usual(table, first, spark=None, second="none"):
        return [first, second]

    assert made(usual, "one", second="two").op_kwargs == {"first": "one", "second": "two"}
    assert made(usual, "one", "two").op_kwargs == {"first": "one", "second": "two"}
    with pytest.raises(TypeError):
        made(usual, "one", "two", "three")
    with pytest.raises(TypeError):
        made(usual, "one", first="two")
    with pytest.raises(TypeError):
        made(names, "one")
    with pytest.raises(TypeError):
        made(by_name, "one", "two")


def test_the_call_has_the_last_word_and_a_default_of_the_dag_the_first(catalog, orders):
    catalog.create_table("shop.other", ORDERS)
    catalog.create_table("shop.third", ORDERS)

    @task.lake_job(table="shop.other")
    def location(table):
        return table.location.rpartition("/")[2]

    @task.lake_job
    def by_default(table):
        return table.location.rpartition("/")[2]

    with DAG("shop", schedule=None, default_args={"table": "shop.orders"}):
        assert do(location) == "other"
        assert do(location, table="shop.third") == "third"
        assert do(by_default) == "orders"


def test_a_function_that_takes_everything_gets_everything(orders):
    @task.lake_job(table="shop.orders")
    def everything(**given):
        return sorted({"table", "ti", "spark"} & given.keys())

    assert do(everything) == ["table", "ti"]


def test_metadata_and_assets_go_where_those_of_any_task_go(orders):
    seen = Asset("seen")

    @task.lake_job(table="shop.orders", outlets=[seen])
    def look(table):
        yield Metadata(seen, {"columns": len(table.schema.fields)})

    context = task_context()
    do(look, context=context)
    assert context["outlet_events"][seen].extra == {"columns": 2}


def test_the_task_says_which_table_it_works_on(orders):
    context = task_context()
    do(committed(lambda: ROWS, task_id="work"), context=context)
    said = {"table": "shop.orders", "lake_conn_id": "lake_default"}
    assert context["ti"].xcoms == {"lake_table": said}


# What is committed


def batches():
    yield from pa.Table.from_pylist(ROWS).to_batches()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ROWS,
        lambda: tuple(ROWS),
        lambda: pa.Table.from_pylist(ROWS),
        lambda: pa.RecordBatch.from_pylist(ROWS),
        lambda: pa.Table.from_pylist(ROWS).to_reader(),
        lambda: pd.DataFrame(ROWS),
        lambda: [pa.RecordBatch.from_pylist(ROWS)],
        batches,
    ],
    ids=["dictionaries", "tuple", "table", "batch", "reader", "pandas", "batches", "generator"],
)
@pytest.mark.parametrize("create", [False, True], ids=["into a table", "creating it"])
def test_rows_of_many_kinds_are_committed(catalog, make, create):
    if not create:
        catalog.create_table("shop.orders", ORDERS)

    result = do(committed(make, task_id="work", create=create))

    assert rows_of(catalog.table("shop.orders")) == ROWS
    assert (result["snapshot_id"], result["previous_snapshot_id"]) == (1, None)
    assert (result["skipped"], result["replayed"]) == (False, False)
    assert (result["report"]["rows"], result["report"]["files"]) == (2, 1)


def test_the_result_has_the_members_of_every_job(orders):
    result = do(committed(lambda: ROWS, task_id="work"))

    assert [*result] == [
        "job",
        "table",
        "skipped",
        "reason",
        "snapshot_id",
        "previous_snapshot_id",
        "replayed",
        "report",
        "seconds",
    ]
    assert (result["job"], result["table"]) == ("lake_commit", "shop.orders")
    assert made(committed(lambda: ROWS, task_id="work")).multiple_outputs


def test_a_retry_finds_the_snapshot_and_calls_nobody(orders):
    calls = []
    context = task_context()
    function = committed(lambda: calls.append(1) or ROWS, task_id="work")

    first = do(function, context=context)
    context["ti"].try_number = 2
    second = do(function, context=context)

    assert calls == [1]
    assert len(orders.snapshots()) == 1
    assert (second["snapshot_id"], second["replayed"]) == (first["snapshot_id"], True)


def test_another_task_commits_for_itself(orders):
    function = committed(lambda: ROWS, task_id="work")

    for name in ("one", "two"):
        do(function, context=task_context(name))

    assert len(orders.snapshots()) == 2


def test_outlets_hear_of_the_snapshots(orders):
    outlet = lake_asset("shop.orders")
    context = task_context()

    do(committed(lambda: ROWS, task_id="work", outlets=[outlet]), context=context)

    said = context["outlet_events"][outlet].extra
    assert (said["table"], said["snapshot_id"], said["rows"]) == ("shop.orders", 1, 2)


def test_rows_say_what_they_do(catalog):
    function = committed(
        lambda op, item: [{"id": 1, "item": item, "op": op}],
        task_id="work",
        create=True,
        primary_key=["id"],
        table_options={"bucket": "1"},
        kinds="op",
    )

    do(function, "+I", "apple", context=task_context("a"))
    do(function, "+U", "pear", context=task_context("b"))
    orders = catalog.table("shop.orders")
    assert orders.schema.arrow_schema().names == ["id", "item"]
    assert rows_of(orders) == [{"id": 1, "item": "pear"}]
    do(function, "-D", "pear", context=task_context("c"))
    assert rows_of(catalog.table("shop.orders")) == []


def test_rows_in_transaction_order_leave_what_a_stream_changed_since(catalog):
    orders = catalog.create_table(
        "shop.orders", ORDERS, primary_key=["id"], options={"bucket": "1"}
    )
    orders.write(pa.Table.from_pylist(ROWS))
    read = str(orders.position())
    orders.write(pa.table({"id": [1], "item": ["quince"]}))
    function = committed(
        lambda: [{"id": 1, "item": "plum"}, {"id": 2, "item": "plum"}],
        task_id="work",
        overwrite="table",
        read_snapshot=read,
        conflict="transaction-order",
    )

    do(function)
    assert rows_of(orders) == [{"id": 1, "item": "quince"}, {"id": 2, "item": "plum"}]


@pytest.mark.parametrize(
    ("overwrite", "left"),
    [
        ({}, [("b", 2)]),
        ({"dt": "b"}, [("a", 1), ("b", 2)]),
        ("table", [("b", 2)]),
        ("partitions", [("a", 1), ("b", 2)]),
        ("dynamic", [("a", 1), ("b", 2)]),
        (None, [("a", 1), ("b", 1), ("b", 2)]),
    ],
)
def test_rows_replace_what_they_are_to_replace(catalog, overwrite, left):
    table = catalog.create_table(
        "shop.orders", [("dt", "STRING"), ("n", "BIGINT")], partition_by=["dt"]
    )
    table.write(pa.table({"dt": ["a", "b"], "n": [1, 1]}))

    do(committed(lambda: [{"dt": "b", "n": 2}], task_id="work", overwrite=overwrite))

    found = table.scan().to_arrow().to_pylist()
    assert sorted((row["dt"], row["n"]) for row in found) == left


@pytest.mark.parametrize("create", [False, True])
def test_no_rows_are_nothing_to_do_and_skip_if_asked(catalog, create):
    if not create:
        catalog.create_table("shop.orders", ORDERS)

    result = do(committed(list, task_id="work", create=create))

    assert (result["skipped"], result["snapshot_id"]) == (True, None)
    assert "no rows" in result["reason"]
    with pytest.raises(AirflowSkipException):
        do(committed(list, task_id="work", create=create, skip_if_noop=True))


def test_a_function_that_creates_may_ask_for_the_table_that_is_not_there(catalog):
    @task.lake_commit(table="shop.orders", create=True)
    def numbered(table):
        return [{"id": 0 if table is None else table.scan().count()}]

    for name in ("a", "b"):
        do(numbered, context=task_context(name))

    assert rows_of(catalog.table("shop.orders")) == [{"id": 0}, {"id": 1}]


def test_a_new_table_is_as_asked_or_refused_and_not_left_empty(catalog):
    new = {"create": True, "primary_key": ["id"], "table_options": {"bucket": 1}}

    with pytest.raises(AirflowFailException, match="NOT NULL"):
        do(committed(lambda: [{"id": 1}, {"id": None}], task_id="work", **new))
    assert catalog.list_tables("shop") == []

    do(committed(lambda: [{"id": 1}], task_id="work", **new))
    with pytest.raises(
        AirflowFailException, match=r"primary_key is \['id'\] in the table and \[\]"
    ):
        do(
            committed(lambda: [{"id": 1}], task_id="work", **{**new, "primary_key": []}),
            context=task_context("b"),
        )


# Mistakes


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "returned None"),
        ([{"id": 1, "price": 2}], "rows with unknown column 'price'"),
        ([{"id": "one"}], "cannot be read"),
        (
            [{"id": 1}, {"id": 1.5}],
            "1.5 for column 'id' of row 1, counted from 0, but the column has type int64 and "
            "would hold 1",
        ),
        (7, "returned a value of type int"),
        ("rows", "returned a value of type str"),
    ],
)
def test_what_is_no_rows_fails_at_once_and_publishes_nothing(orders, returned, said):
    with pytest.raises(AirflowFailException, match=said):
        do(committed(lambda: returned, task_id="work"))

    assert orders.snapshots() == []


def test_rows_that_end_in_an_error_are_not_there(orders):
    def broken():
        yield pa.RecordBatch.from_pylist(ROWS)
        raise ZeroDivisionError("after a batch")

    with pytest.raises(ZeroDivisionError):
        do(committed(broken, task_id="work"))

    assert orders.snapshots() == []
    assert [path for path in Path(orders.location[7:]).rglob("*.parquet")] == []


@pytest.mark.parametrize("name", ["lake_job", "lake_commit"])
def test_a_table_that_is_not_there_is_not_tried_again(catalog, name):
    with pytest.raises(AirflowFailException, match=r"shop\.orders"):
        do(getattr(task, name)(table="shop.orders", task_id="work")(lambda table: ROWS))


def test_what_the_function_itself_does_not_find_may_come(orders):
    @task.lake_job(table="shop.orders")
    def look(table):
        return table.scan(tag="v1").count()

    with pytest.raises(lake.NotFoundError):
        do(look)


def test_a_wrong_request_of_the_function_is_not_tried_again(orders):
    @task.lake_job(table="shop.orders")
    def look(table):
        return table.scan(where="no sql !").count()

    with pytest.raises(AirflowFailException, match="InvalidRequestError"):
        do(look)


def takes_nothing():
    return 1


async def waits(table):
    return table


@pytest.mark.parametrize(
    ("name", "function", "arguments", "said"),
    [
        ("lake_job", takes_nothing, {}, "neither an argument 'table' nor 'spark'"),
        ("lake_job", waits, {}, "is async"),
        (
            "lake_commit",
            takes_nothing,
            {"conf": {"a": 1}},
            "no argument 'spark', so 'conf' has no effect",
        ),
        ("lake_commit", takes_nothing, {"spark_conn_id": "x"}, "so 'spark_conn_id' has no effect"),
        ("lake_commit", takes_nothing, {"table": 7}, "'table' must be a non-empty str"),
        ("lake_commit", takes_nothing, {"overwrite": "all"}, "argument 'overwrite' must be"),
        ("lake_commit", takes_nothing, {"create": "yes"}, "argument 'create' must be"),
    ],
)
def test_what_cannot_be_right_is_refused_by_the_decorator(name, function, arguments, said):
    with pytest.raises(LakeArgumentError, match=said):
        getattr(task, name)(**{"table": "shop.orders", **arguments})(function)


def test_a_table_by_position_is_refused_with_what_to_write():
    with pytest.raises(LakeArgumentError, match=r"'shop.orders': write @task.lake_job\(table="):
        task.lake_job("shop.orders")


@pytest.mark.parametrize(
    ("arguments", "call", "said"),
    [
        ({}, {}, "has no table"),
        ({"table": "orders"}, {}, "must be database.table"),
        ({"table": "shop.orders"}, {"spark": 1}, r"call .*\(\) without spark="),
        ({"table": "shop.orders", "primary_key": ["id"]}, {}, "needs create=True"),
    ],
)
def test_what_cannot_be_right_is_refused_by_the_call(arguments, call, said):
    def rows(spark=None):
        return []

    with pytest.raises(LakeArgumentError, match=said):
        task.lake_commit(**arguments)(rows)(**call)


# Its end


@pytest.mark.parametrize("name", ["lake_job", "lake_commit"])
def test_whoever_ends_the_task_interrupts_the_function(orders, name):
    @getattr(task, name)(table="shop.orders")
    def work(table, ti=None):
        ti.asked.on_kill()
        return ROWS

    context = task_context()
    context["ti"].asked = operator = made(work)
    with pytest.raises(LakeTaskKilled):
        operator.execute(context)
    operator.on_kill()  # it is over: there is nothing to interrupt
    assert orders.snapshots() == []


def test_lineage_tells_of_the_commit_and_claims_nothing_of_a_job(orders):
    pytest.importorskip("airflow.providers.openlineage", reason="needs the openlineage provider")
    operator = made(committed(lambda: ROWS, task_id="work"))
    operator.execute(task_context())

    [output] = operator.get_openlineage_facets_on_complete(None).outputs

    assert output.outputFacets["outputStatistics"].rowCount == 2
    assert output.facets["version"].datasetVersion == "1"
    look = made(task.lake_job(table="shop.orders", task_id="look")(lambda table: 1))
    assert not hasattr(look, "get_openlineage_facets_on_complete")


# Airflow around it


@pytest.fixture(scope="module")
def dags(airflow_db):
    from tests.airflow.versions import DagBag

    bag = DagBag(str(TEST_DAGS))
    assert bag.import_errors == {}
    return bag.dags


def result_of(run, task_id, map_index=-1):
    [ti] = [
        ti for ti in run.get_task_instances() if (ti.task_id, ti.map_index) == (task_id, map_index)
    ]
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        found = XComModel.get_many(
            key="return_value",
            run_id=run.run_id,
            dag_ids=ti.dag_id,
            task_ids=task_id,
            map_indexes=map_index,
        )
        return XComModel.deserialize_value(session.execute(found).scalars().one())


def test_the_page_s_first_dag_does_what_it_says(dags, warehouse):
    run = dags["prices"].test(logical_date=datetime(2024, 1, 31, tzinfo=UTC))

    assert run.state == "success"
    assert result_of(run, "dearest") == "pear"
    prices = lake.open_catalog(warehouse).table("shop.prices").scan().to_arrow()
    assert prices["day"].to_pylist() == ["2024-01-31"] * 2


def test_one_function_serves_many_tables(dags, catalog):
    run = dags["functions"].test()

    assert run.state == "success"
    for name in ("shop.tea", "shop.milk"):
        assert catalog.table(name).scan().count() == 3
    assert catalog.table("shop.tea").scan().to_arrow()["run"].to_pylist() == [run.run_id] * 3
    assert result_of(run, "count") == 5
    assert result_of(run, "report") == [1, 1]
    assert result_of(run, "count_what_was_picked") == 3


def test_a_mapped_mistake_is_not_tried_again(dags, catalog):
    run = dags["mistaken_function"].test()

    tries = {(ti.state, ti.try_number) for ti in run.get_task_instances()}
    assert tries == {("failed", 1)}


WRONG_VALUES = {
    "kinds": ("", "must be a non-empty str"),
    "overwrite": ("static", "must be a dict or 'dynamic' or 'partitions' or 'table', got a str"),
    "read_snapshot": ("the last one", "must be a position"),
    "conflict": ("ordered", "must be 'optimistic' or 'transaction-order'"),
    "create": ("yes", "must be True or False, got 'yes'"),
    "primary_key": (["a", "a"], "'a' appears twice"),
    "partition_by": (["a", "a"], "'a' appears twice"),
    "table_options": ({"bukket": "1"}, "bukket"),
}


def test_every_key_of_a_commit_has_a_value_that_is_refused():
    assert {*own_keys(LakeFunctionCommit)} == {*WRONG_VALUES}


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_a_value_that_no_commit_can_have_is_refused_before_the_function_is_called(name):
    """By the decorator already, so of a mapped task, too."""
    wrong, words = WRONG_VALUES[name]
    decorator = task.lake_commit(**{"table": "shop.orders", "create": True, name: wrong})
    with pytest.raises(LakeArgumentError, match=rf"'rows': .*'{name}' .*{words}"):

        @decorator
        def rows():
            return ROWS


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_a_default_of_a_dag_that_no_commit_can_have_is_refused_where_the_function_is_called(name):
    wrong, words = WRONG_VALUES[name]
    arguments = {"table": "shop.orders", "create": True, name: wrong}

    def rows():
        return ROWS

    with (
        DAG("shop", schedule=None, default_args=arguments),
        pytest.raises(LakeArgumentError, match=rf"'rows': .*'{name}' .*{words}"),
    ):
        task.lake_commit(rows)()
