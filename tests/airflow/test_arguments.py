"""A mistake in a DAG is reported where the DAG is parsed, with the name of the argument."""

from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace

import pendulum
import pytest
from airflow.sdk import DAG, XComArg, literal, task, task_group
from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.definitions._internal.expandinput import MappedArgument
from airflow.sdk.definitions.param import DagParam

from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.arguments.open_values import is_open
from airflow_provider_lake.compat import is_resolved_later
from airflow_provider_lake.operators.check import LakeCheckOperator
from airflow_provider_lake.operators.commit import LakeCommitOperator
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.compact_database import LakeCompactDatabaseOperator
from airflow_provider_lake.operators.expire_partitions import LakeExpirePartitionsOperator
from airflow_provider_lake.operators.expire_snapshots import LakeExpireSnapshotsOperator
from airflow_provider_lake.operators.health import LakeHealthOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from airflow_provider_lake.operators.remove_orphans import LakeRemoveOrphansOperator
from airflow_provider_lake.operators.rollback import LakeRollbackOperator
from airflow_provider_lake.operators.tag import LakeTagOperator
from airflow_provider_lake.operators.update import LakeUpdateOperator
from airflow_provider_lake.sensors.snapshot import LakeSnapshotSensor
from tests.airflow.contexts import task_context
from tests.airflow.versions import AirflowFailException


def compact(**arguments):
    return LakeCompactOperator(**{"task_id": "tidy", "table": "shop.orders", **arguments})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"table": 1}, "'table' must be a non-empty str, got 1"),
        ({"table": ""}, "'table' must be a non-empty str"),
        ({"table": "orders"}, "'table' must be database.table, got 'orders'"),
        ({"table": "shop."}, "the table name '' of 'shop.' is not allowed"),
        (
            {"table": "shop.orders$snapshots"},
            "a job works on the table itself: write 'shop.orders'",
        ),
        ({"engine": "flink"}, "'engine' must be 'auto' or 'python' or 'spark', got 'flink'"),
        (
            {"strategy": "most"},
            "'strategy' must be 'full' or 'minor' or 'sort' or 'zorder', got 'most'",
        ),
        ({"buckets": "1"}, "'buckets' must be a list, each item a whole number, got '1'"),
        ({"buckets": [1, "x"]}, "'buckets' must be a list"),
        ({"partitions": [1]}, "'partitions' must be a dict or a list, each item a dict"),
        ({"dry_run": "yes"}, "'dry_run' must be True or False, got 'yes'"),
        ({"skip_if_noop": 1}, "'skip_if_noop' must be True or False, got 1"),
        ({"lake_conn_id": None}, "'lake_conn_id' must be a non-empty str"),
        (
            {"conn_id": "spark_default"},
            "write lake_conn_id for the lake, or spark_conn_id for Spark",
        ),
        ({"application_args": ["x"]}, "leave out application_args"),
        ({"reconnect_on_retry": True}, "leave out reconnect_on_retry"),
        ({"idle": 5}, "'idle' must be a non-empty str, got 5: write '5 h'"),
        ({"engine": "python", "conf": {}}, "engine 'python' starts no Spark: leave out conf"),
        ({"engine": "python", "spark_conn_id": "s"}, "leave out spark_conn_id"),
        ({"stratgy": "full"}, "has no argument 'stratgy'; did you mean 'strategy'?"),
        ({"retires": 3}, "has no argument 'retires'; did you mean 'retries'?"),
        ({"executor": "threads"}, "leave it out, or write bucket_executor='threads'"),
    ],
)
def test_what_can_never_be_right_is_refused_by_the_constructor(arguments, words):
    with pytest.raises(LakeArgumentError, match="'tidy'") as refused:
        compact(**arguments)

    assert words in str(refused.value)
    assert isinstance(refused.value, TypeError | AirflowFailException)


def test_values_of_pythons_own_types_are_taken():
    land = LakeIngestOperator(
        task_id="land",
        table="shop.orders",
        source=Path("in", "a.csv"),
        create=True,
        table_options={"bucket": 1, "deletion-vectors.enabled": True},
    )
    tidy = LakeExpireSnapshotsOperator(
        task_id="tidy", table="shop.orders", older_than=timedelta(days=7)
    )

    assert land.source == str(Path("in", "a.csv"))
    assert land.table_options == {"bucket": "1", "deletion-vectors.enabled": "true"}
    assert tidy.older_than == "7 d"
    days = [date(2024, 1, 30), date(2024, 1, 31)]
    assert compact(partitions={"dt": days[0]}).partitions == {"dt": "2024-01-30"}
    assert compact(partitions=[{"dt": day} for day in days]).partitions == [
        {"dt": "2024-01-30"},
        {"dt": "2024-01-31"},
    ]


def test_arguments_that_mean_nothing_together_are_refused():
    with pytest.raises(LakeArgumentError, match="'new_name'"):
        LakeTagOperator(task_id="keep", table="shop.orders", action="rename", tag="v1")
    with pytest.raises(LakeArgumentError, match="'staged'"):
        LakeCommitOperator(task_id="publish", table="shop.orders", staged=[])


@pytest.mark.parametrize(
    ("operator", "arguments", "words"),
    [
        (
            LakeRollbackOperator,
            {},
            "exactly one of the arguments snapshot, tag, as_of, watermark: got none",
        ),
        (LakeRollbackOperator, {"snapshot": 1, "tag": "v"}, "got snapshot and tag"),
        (LakeRollbackOperator, {"snapshot": 1, "force": True}, "'force' needs a rollback that"),
        (
            LakeRemoveOrphansOperator,
            {"older_than": "1 h"},
            "'older_than' is '1 h', but files of the",
        ),
        (
            LakeTagOperator,
            {"action": "create", "tag": "v", "snapshot": 1, "watermark": 0},
            "give only one of the arguments snapshot and watermark",
        ),
        (
            LakeTagOperator,
            {"action": "replace", "tag": "v", "snapshot": 1, "from_tag": "w"},
            "give only one of the arguments snapshot and from_tag",
        ),
        (
            LakeExpireSnapshotsOperator,
            {"retain_max": 0},
            "'retain_max' must be a whole number from 1",
        ),
        (
            LakeExpireSnapshotsOperator,
            {"limit": -1},
            "'limit' must be a whole number from 1 on, got -1",
        ),
        (
            LakeExpireSnapshotsOperator,
            {"retain_max": 1, "retain_min": 5},
            "'retain_min' is 5, which is more than 'retain_max', 1",
        ),
        (LakeCompactOperator, {"order_strategy": "zorder"}, "needs argument 'order_by'"),
        (
            LakeCompactOperator,
            {"order_by": ["id"], "strategy": "minor"},
            "leave out strategy 'minor', or 'order_by'",
        ),
        (
            LakeCompactOperator,
            {"order_by": ["id"], "idle": "1 h"},
            "leave out 'idle', or 'order_by'",
        ),
    ],
)
def test_what_no_table_can_do_is_refused_where_it_is_parsed(operator, arguments, words):
    with pytest.raises(LakeArgumentError, match="'t'") as refused:
        operator(task_id="t", table="shop.orders", **arguments)

    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (LakeRollbackOperator, {"snapshot": 1, "force": True, "as_latest": False}),
        (LakeRemoveOrphansOperator, {"older_than": "1 h", "allow_younger": True}),
        (LakeRemoveOrphansOperator, {"older_than": "1 d"}),
        (LakeRemoveOrphansOperator, {"older_than": "2024-01-31"}),
    ],
)
def test_the_same_means_something_beside_the_right_words(operator, arguments):
    made = operator(task_id="t", table="shop.orders", **arguments)

    assert {name: getattr(made, name) for name in arguments} == arguments


@pytest.mark.parametrize("argument", ["database", "including", "excluding"])
def test_an_expression_of_names_that_is_none_is_refused_where_it_is_parsed(argument):
    with pytest.raises(LakeArgumentError, match=f"'{argument}' must be a regular expression, got"):
        LakeCompactDatabaseOperator(**{"task_id": "t", "database": "shop", argument: "("})


def test_a_template_or_another_task_s_result_is_taken_as_it_is():
    with DAG("d", schedule=None):
        first = compact()
        land = LakeIngestOperator(task_id="land", table="shop.orders", source="*", stage=True)
        tag = LakeTagOperator(
            task_id="keep",
            table="{{ params.table }}",
            action="create",
            tag="{{ ds }}",
            snapshot=first.output["snapshot_id"],
        )
        publish = LakeCommitOperator(
            task_id="publish", table="shop.orders", staged=[land.output["staged"]]
        )

    assert isinstance(tag.snapshot, XComArg)
    assert (tag.upstream_task_ids, publish.upstream_task_ids) == ({"tidy"}, {"land"})


@pytest.mark.parametrize("kind", [XComArg, MappedArgument, DagParam, type(literal(1))])
def test_a_value_that_airflow_resolves_before_a_task_runs_is_recognised(kind):
    assert is_resolved_later(object.__new__(kind))


@pytest.mark.parametrize("value", ["{{ ds }}", Path("in"), None, DAG, XComArg])
def test_a_value_of_the_dag_file_is_not_resolved_later(value):
    assert not is_resolved_later(value)


@pytest.mark.parametrize("operator", [LakeHealthOperator, LakeSnapshotSensor])
def test_an_argument_of_a_mapped_task_group_is_taken_as_it_is(operator):
    @task_group
    def each(name):
        operator(task_id="look", table=name)

    with DAG("d", schedule=None) as dag:
        each.expand(name=["shop.a", "shop.b"])

    assert is_open(dag.get_task("each.look").table)


def test_none_in_the_values_of_a_mapped_task_group_is_the_default(warehouse):
    @task_group
    def each(mode):
        LakeIngestOperator(task_id="land", table="shop.a", source="a.csv", overwrite=mode)

    with DAG("d", schedule=None) as dag:
        each.expand(mode=["table", None])
    land = dag.get_task("each.land")
    land._before, land.overwrite = {"overwrite": land.overwrite}, None

    land._take_rendered()

    assert land.overwrite is None


def test_a_decorated_function_in_a_mapped_task_group_is_taken_as_it_is():
    @task_group
    def each(name):
        @task.lake_job(table=name)
        def look(table):
            return table.name

        look()

    with DAG("d", schedule=None) as dag:
        each.expand(name=["shop.a"])

    assert is_open(dag.get_task("each.look").table)


def test_a_parameter_of_the_dag_may_be_shared_by_mapped_tasks():
    with DAG("d", schedule=None, params={"day": "2024-01-31"}) as dag:
        mapped = LakeCompactOperator.partial(
            task_id="tidy", partitions={"dt": dag.param("day")}
        ).expand(table=["a.b", "c.d"])

    assert is_open(mapped.partial_kwargs["partitions"])


def test_a_literal_is_checked_once_its_value_is_there(warehouse):
    task = compact(table=literal("shop.{{ orders }}"), strategy=literal("most"))
    task.render_template_fields({})

    assert task.table == "shop.{{ orders }}"
    with pytest.raises(
        LakeArgumentError,
        match="'strategy' must be 'full' or 'minor' or 'sort' or 'zorder', got 'most'",
    ):
        task.execute(task_context())


@pytest.mark.parametrize(
    ("argument", "rendered", "read"),
    [
        ("retain_max", "5", 5),
        ("dry_run", "True", True),
        ("older_than", "7 d", "7 d"),
        ("older_than", "1700000000000", 1_700_000_000_000),
    ],
)
def test_what_a_template_renders_to_is_read_as_the_argument_s_type(argument, rendered, read):
    task = LakeExpireSnapshotsOperator(
        task_id="expire", table="shop.orders", **{argument: "{{ value }}"}
    )
    task.render_template_fields({"value": rendered})
    task._take_rendered()

    assert task._given()[argument] == read


def test_a_list_may_be_rendered_as_json():
    task = compact(partitions="{{ parts }}", buckets="{{ buckets }}")
    task.render_template_fields({"parts": '[{"dt": "2024-01-01"}]', "buckets": "[0, 1]"})
    task._take_rendered()

    assert task._given()["partitions"] == [{"dt": "2024-01-01"}]
    assert task._given()["buckets"] == [0, 1]


@pytest.mark.parametrize("rendered", ["", "None", "many"])
def test_a_template_that_renders_to_nonsense_fails_for_good_before_anything_is_done(
    rendered, warehouse
):
    task = LakeExpireSnapshotsOperator(task_id="e", table="shop.orders", retain_max="{{ value }}")
    task.render_template_fields({"value": rendered})

    with pytest.raises(AirflowFailException, match="'retain_max' must be a whole number, but its"):
        task.execute(task_context())


def test_of_an_object_what_is_wrong_is_named_and_no_value_is_shown(warehouse):
    with pytest.raises(LakeArgumentError, match=r"got a dict with 'b' as list$"):
        compact(partitions={"a": "s3cret", "b": []})

    task = compact(partitions={"dt": "{{ value }}", "hour": "7"})
    task.render_template_fields({"value": ""})
    with pytest.raises(LakeArgumentError, match=r"renders to a dict with 'dt' empty$"):
        task.execute(task_context())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"conf": "spark.key=hush"}, "'conf' must be a dict, got a str"),
        ({"conf": [("spark.key", "hush")]}, "'conf' must be a dict, got a list"),
        ({"env_vars": '{"KEY": "hush"'}, "'env_vars' must be a dict, got a str"),
        (
            {"source_options": '{"user": "hush"'},
            "'source_options' must be a dict of str, got a",
        ),
        ({"source_options": {"user": ["hush"]}}, "got a dict with 'user'"),
        ({"table_options": ["hush"]}, "'table_options' must be a dict of str, got a list"),
        (
            {"table_options": {"fs.s3a.secret.key": "hush"}},
            "got a dict with 'fs.s3a.secret.key'",
        ),
        ({"jdbc_url": ["jdbc:x://user:hush@host/shop"]}, "'jdbc_url' must be a non-empty str"),
    ],
)
def test_what_may_be_secret_is_shown_by_no_message(given, words):
    with pytest.raises(LakeArgumentError) as refused:
        LakeIngestOperator(task_id="land", table="shop.orders", create=True, **given)

    assert words in str(refused.value)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("text", ["last week", "7", "d 7", ""])
def test_a_moment_nobody_can_read_is_refused_at_parse_and_after_rendering(text, warehouse):
    words = "'older_than' must be a time such as '2024-01-31 10:00', an age such as '7 d', or"
    with pytest.raises(LakeArgumentError, match=words):
        LakeExpireSnapshotsOperator(task_id="e", table="shop.orders", older_than=text)
    task = LakeExpireSnapshotsOperator(task_id="e", table="shop.orders", older_than="{{ value }}")
    task.render_template_fields({"value": text})
    with pytest.raises(LakeArgumentError, match=words):
        task.execute(task_context())


@pytest.mark.parametrize("text", ["last week", "7 d"])
def test_a_time_without_an_age_advises_no_age(text, warehouse):
    words = "'as_of' must be a time such as '2024-01-31 10:00' or epoch milliseconds, "
    with pytest.raises(LakeArgumentError, match=f"{words}got '{text}'$"):
        LakeRollbackOperator(task_id="r", table="shop.orders", as_of=text)
    task = LakeRollbackOperator(task_id="r", table="shop.orders", as_of="{{ value }}")
    task.render_template_fields({"value": text})
    with pytest.raises(LakeArgumentError, match=words):
        task.execute(task_context())


DAY = pendulum.datetime(2024, 1, 31, 12, tz="Europe/Paris")


def test_a_moment_may_be_a_date_or_a_time():
    given = {"task_id": "e", "table": "shop.orders", "older_than": DAY}
    assert LakeExpireSnapshotsOperator(**given).older_than == "2024-01-31T11:00:00+00:00"
    dated = LakeExpireSnapshotsOperator(**{**given, "older_than": DAY.date()})
    assert dated.older_than == "2024-01-31"
    with DAG("d", schedule=None):
        mapped = LakeExpireSnapshotsOperator.partial(task_id="e", older_than=DAY).expand(
            table=["a.b"]
        )
    assert mapped.unmap({"table": "a.b"}).older_than == "2024-01-31T11:00:00+00:00"


def test_a_sensor_takes_a_date_for_its_first_moment():
    sensor = LakeSnapshotSensor(task_id="s", table="shop.orders", since=DAY.date())

    assert sensor.condition().since_millis == 1_706_659_200_000


def test_a_moment_that_a_native_template_renders_is_taken(warehouse):
    with DAG("d", schedule=None, render_template_as_native_obj=True):
        task = LakeExpireSnapshotsOperator(
            task_id="e", table="shop.orders", older_than="{{ data_interval_start }}"
        )
    task.render_template_fields({"data_interval_start": DAY})
    task._take_rendered()

    assert task._given()["older_than"] == "2024-01-31T11:00:00+00:00"


@pytest.mark.parametrize("name", ["overwrite", "read_snapshot"])
def test_a_native_template_that_renders_to_none_does_not_choose_the_default(warehouse, name):
    with DAG("d", schedule=None, render_template_as_native_obj=True):
        task = LakeIngestOperator(
            task_id="i", table="a.b", source="in/*", **{name: "{{ params.missing }}"}
        )
    task.render_template_fields({"params": {"missing": None}})
    with pytest.raises(LakeArgumentError, match=f"argument '{name}' renders to None. Nothing"):
        task.execute(task_context())


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (LakeExpireSnapshotsOperator, "limit"),
        (LakeExpireSnapshotsOperator, "retain_min"),
        (LakeExpireSnapshotsOperator, "retain_max"),
        (LakeExpirePartitionsOperator, "expiration_time"),
        (LakeExpirePartitionsOperator, "max_num"),
        (LakeRemoveOrphansOperator, "running_since"),
    ],
)
def test_a_missing_bound_does_not_delete_more(warehouse, operator, name):
    with DAG("d", schedule=None, render_template_as_native_obj=True):
        task = operator(task_id="t", table="a.b", **{name: "{{ params.none }}"})
    task.render_template_fields({"params": {"none": None}})
    with pytest.raises(LakeArgumentError, match=rf"argument '{name}' renders to None\."):
        task.execute(task_context())


def rendered_tag(**given):
    with DAG("d", schedule=None, render_template_as_native_obj=True):
        task = LakeTagOperator(task_id="t", table="a.b", tag="v1", **given)
    task.render_template_fields({"params": {"none": None, "action": "delete"}})
    return task


@pytest.mark.parametrize("name", ["snapshot", "from_tag", "at_or_after", "watermark"])
def test_a_tag_is_not_at_the_newest_snapshot_because_a_template_renders_to_none(warehouse, name):
    task = rendered_tag(action="create", **{name: "{{ params.none }}"})
    with pytest.raises(LakeArgumentError, match=f"argument '{name}' renders to None. Nothing"):
        task.execute(task_context())


@pytest.mark.parametrize(
    "given",
    [
        {"action": "create", "snapshot": "{{ params.none }}", "from_tag": "v0"},
        {"action": "{{ params.action }}", "snapshot": "{{ params.none }}"},
    ],
)
def test_a_tag_without_a_snapshot_is_accepted_where_none_is_needed(warehouse, given):
    task = rendered_tag(**given)
    task._take_rendered()
    assert task.snapshot is None


def test_arguments_are_asked_together_once_more_when_they_are_rendered(warehouse):
    task = LakeTagOperator(task_id="t", table="a.b", action="{{ value }}", tag="v1", snapshot=1)
    task.render_template_fields({"value": "delete"})
    with pytest.raises(LakeArgumentError, match="'snapshot' belongs to action"):
        task.execute(task_context())


@pytest.mark.parametrize("template", ["{{ params.nothing }}", "{{ ti.xcoms['x'] }}", "{{ 1 + }}"])
def test_a_template_that_cannot_be_rendered_is_not_retried(template):
    with DAG("d", schedule=None):  # whose templates may not name what is not there
        task = compact(where=template)
    with pytest.raises(LakeArgumentError, match="'tidy': a template of argument 'where' cannot"):
        task.render_template_fields({"params": {}, "ti": SimpleNamespace(xcoms=None)})


@pytest.mark.parametrize("operator", [LakeCompactOperator, LakeSnapshotSensor])
def test_a_template_of_a_mapped_task_that_cannot_be_rendered_is_not_retried(operator):
    with DAG("d", schedule=None) as dag:
        mapped = operator.partial(task_id="m", lake_conn_id="{{ params.no }}").expand(table=["a.b"])
    context = {
        "dag": dag,
        "dag_run": SimpleNamespace(conf={}),
        "ti": SimpleNamespace(map_index=0),
    }
    with pytest.raises(LakeArgumentError, match="a template of argument 'lake_conn_id' cannot"):
        mapped.render_template_fields(context)


def test_a_table_that_renders_to_nonsense_is_told_by_name(warehouse):
    task = compact(table="{{ value }}")
    task.render_template_fields({"value": "None"})
    with pytest.raises(
        LakeArgumentError, match="'table' renders to 'None': the value that its template"
    ):
        task.execute(task_context())


@pytest.mark.parametrize("kind", [LakeCompactOperator, LakeSnapshotSensor])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"table": "shop.orders", "bucket": [1]}, "'bucket'"),
        ({}, "missing keyword argument 'table'"),
    ],
)
def test_a_mapped_task_with_arguments_nobody_has_is_not_retried(kind, given, words):
    """Mapped values may be known to a run only: Airflow creates the operator there."""
    with DAG("d", schedule=None):
        mapped = kind.partial(task_id="t").expand_kwargs(find_tables())

    with pytest.raises(LakeArgumentError, match="task 't'") as refused:
        mapped.unmap(given)
    assert words in str(refused.value)


@task
def find_tables():
    """The tables of a run."""


def test_a_value_that_is_not_there_never_becomes_a_name(warehouse):
    """Else a tag ``None`` would be made, and rows would go to a table ``shop.None``."""
    given = {"task_id": "t", "table": "shop.orders"}
    for waiting, name in (
        (LakeTagOperator(**given, action="create", tag="{{ value }}"), "tag"),
        (LakeIngestOperator(**{**given, "table": "shop.{{ value }}"}, source="*"), "table"),
        (LakeIngestOperator(**given, source="*", checkpoint="{{ value }}"), "checkpoint"),
    ):
        waiting.render_template_fields({"value": None})
        with pytest.raises(
            LakeArgumentError, match=f"'{name}' renders to '.*None': the value that its"
        ):
            waiting.execute(task_context())


@pytest.mark.parametrize(
    "given",
    [
        {"set": {"price": "5", "note": "{{ value }}"}},
        {"set": {"note": "x"}, "conf": {"spark.x": "1", "note": "{{ value }}"}},
    ],
)
def test_a_missing_value_in_a_dict_is_not_written_as_the_text_none(warehouse, given):
    update = LakeUpdateOperator(task_id="t", table="shop.orders", where="id = 1", **given)
    update.render_template_fields({"value": None})
    with pytest.raises(LakeArgumentError, match=r"renders to 'None' in 'note': the value that its"):
        update.execute(task_context())


def test_a_missing_value_in_a_list_in_a_dict_is_not_the_text_none(warehouse):
    accepted = {"status": ["paid", "{{ value }}"]}
    check = LakeCheckOperator(task_id="t", table="shop.orders", accepted_values=accepted)
    check.render_template_fields({"value": None})
    with pytest.raises(LakeArgumentError, match=r"renders to 'None' in 'status': the value that"):
        check.execute(task_context())


def test_what_is_written_down_as_none_is_a_name_like_another():
    task = LakeTagOperator(task_id="t", table="shop.None", action="delete", tag="None")
    task.render_template_fields({})
    task._take_rendered()

    assert task._given()["tag"] == "None"
    values = {"note": "None", "price": "{{ value }}"}
    update = LakeUpdateOperator(task_id="t", table="shop.orders", where="id = 1", set=values)
    update.render_template_fields({"value": 5})
    update._take_rendered()

    assert update._given()["set"] == {"note": "None", "price": "5"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"conf": "spark.a=b"}, "'conf' must be a dict"),
        ({"driver_memory": 4}, "'driver_memory' must be a non-empty str"),
        ({"num_executors": "many"}, "'num_executors' must be a whole number"),
        ({"post_submit_commands": "ls"}, "'post_submit_commands' must be a list"),
        ({"verbose": 1}, "'verbose' must be True or False"),
    ],
)
def test_an_argument_for_spark_of_a_wrong_type_is_refused_where_the_dag_is_parsed(given, words):
    with pytest.raises(LakeArgumentError, match=words):
        compact(**given)


def test_arguments_for_spark_may_be_templates():
    task = compact(driver_memory="{{ memory }}", num_executors="{{ many }}", conf="{{ conf }}")
    task.render_template_fields({"memory": "2g", "many": "3", "conf": '{"spark.a": "b"}'})
    task._take_rendered()

    given = {"driver_memory": "2g", "num_executors": 3, "conf": {"spark.a": "b"}}
    assert task._spark_given() == given


def test_default_args_reach_the_arguments():
    shared = {"lake_conn_id": "lake_eu", "engine": "python", "driver_memory": "2g"}
    with DAG("d", schedule=None, default_args=shared):
        task = compact()

    assert (task.lake_conn_id, task.engine, task.driver_memory) == ("lake_eu", "python", "2g")


def test_a_mapped_task_gets_its_values_one_by_one():
    with DAG("d", schedule=None):
        mapped = LakeCompactOperator.partial(task_id="tidy").expand(table=["a.b", "c.d"])

    assert isinstance(mapped.unmap({"table": "a.b"}), BaseOperator)
    with pytest.raises(LakeArgumentError, match="'table' must be"):
        mapped.unmap({"table": 7})


@pytest.mark.parametrize(
    ("shared", "words"),
    [
        (
            {"strategy": "most"},
            "task 'tidy': argument 'strategy' must be 'full' or 'minor' or 'sort' or 'zorder'",
        ),
        ({"table": 7}, "task 'tidy': argument 'table' must be a non-empty str"),
        ({"conn_id": "spark_default"}, "task 'tidy': write lake_conn_id for the lake"),
        ({"engine": "python", "conf": {}}, "engine 'python' starts no Spark: leave out conf"),
    ],
)
def test_what_mapped_tasks_share_is_checked_where_the_dag_is_parsed(shared, words):
    with DAG("d", schedule=None), pytest.raises(LakeArgumentError) as refused:
        LakeCompactOperator.partial(task_id="tidy", **shared)
    assert words in str(refused.value)


class Choice:
    """The engine that a task chooses for a connection."""

    def __init__(self, connect, tmp_path):
        self._connect, self._warehouse = connect, str(tmp_path)

    def __call__(self, operator, connection, **arguments):
        self._connect(
            "lake_default",
            conn_type="lake",
            extra={"warehouse": self._warehouse, **connection},
        )
        return operator(task_id="work", table="shop.orders", **arguments)._chosen_engine()


@pytest.fixture
def choice(connect, tmp_path):
    return Choice(connect, tmp_path)


@pytest.mark.parametrize(
    ("connection", "arguments", "engine"),
    [
        ({}, {}, "python"),
        ({}, {"spark_conn_id": "s"}, "spark"),
        ({"spark_conn_id": "s"}, {}, "spark"),
        ({"engine": "spark"}, {}, "spark"),
        ({"engine": "python", "spark_conn_id": "s"}, {}, "python"),
        ({"engine": "spark"}, {"engine": "python"}, "python"),
        ({}, {"engine": "spark"}, "spark"),
    ],
)
def test_auto_is_spark_where_somebody_named_one(choice, connection, arguments, engine):
    assert choice(LakeCompactOperator, connection, **arguments) == engine


def test_work_on_metadata_stays_with_the_worker_unless_the_task_itself_says_spark(choice):
    assert choice(LakeExpireSnapshotsOperator, {"engine": "spark"}) == "python"
    assert choice(LakeExpireSnapshotsOperator, {}, spark_conn_id="s") == "spark"


def test_a_template_may_choose_the_engine():
    task = compact(engine="{{ engine }}")
    task.render_template_fields({"engine": "python"})
    task._take_rendered()

    assert task._chosen_engine() == "python"
