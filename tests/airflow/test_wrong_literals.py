"""Every argument of every operator: a wrong literal is refused where the DAG is parsed.

The words are those of the job's own parser, which reads the request by the same rules. What no rule
can know without the table is listed below, key by key: a new key gets a rule, or a reason there.
"""

from importlib import import_module
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import pytest
from airflow.sdk import DAG

import lakeformat as lake
from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.arguments.refusal import in_words_of_a_dag
from airflow_provider_lake.jobs.job import own_keys
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from airflow_provider_lake.operators.job import LakeJobOperator, LakeWarehouseJobOperator
from airflow_provider_lake.provider_info import get_provider_info
from spark_jobs.job_requests import values
from spark_jobs.job_requests.request import key_hints, read_request
from tests.airflow.contexts import task_context
from tests.airflow.versions import AirflowFailException

WRONG = {
    values.AcceptedValues: {"status": []},
    values.AgesByColumn: {"day": "soon"},
    values.BucketNumbers: [0, -1],
    values.ColumnCasts: {"id": "NUMBER"},
    values.ColumnNames: [],
    values.ColumnSources: {"id": "ID", "no": "ID"},
    values.ConsumerName: "a/b",
    values.DialectCharacter: "ab",
    values.Duration: "soon",
    values.Expiration: "0 d",
    values.KeyColumns: ["id", "id"],
    values.MessageTable: "orders",
    values.Moment: "7 d",
    values.NewColumnValues: {},
    values.Numbered: 0,
    values.OptionalCharacter: "ab",
    values.PastTime: "7 parsecs",
    values.RegularExpression: "(",
    values.Retention: "0 s",
    values.Interval: "0 s",
    values.RowCount: -1,
    values.Share: 3.0,
    values.TableOptionTexts: {"bucket": "many"},
    values.TablePosition: "the last one",
    values.TextEncoding: "utf-128",
    values.TimeFormatter: "yyyy-QQ",
    values.TimePattern: "dt",
    values.UniqueColumns: [[]],
}
"""For each rule a value of the right type that breaks it."""

WITHOUT_RULE = {
    "where": "reading a condition loads Arrow: it is refused before anything is submitted",
    "conditions": "as where",
    "warn_only": "compared with the checks beside it",
    "partitions": "the table knows its partitions",
    "source": "any text is a path",
    "source_table": "checked as every name of a table",
    "checkpoint": "any text is a path",
    "jdbc_url": "what is one depends on the engine",
    "jdbc_table": "the database knows its tables",
    "source_options": "the database knows its options",
    "watermark": "any whole number is one",
    "staged": "the table knows what is staged",
    "tag": "the format of the table decides which names a tag may have",
    "from_tag": "as tag",
    "new_name": "as tag",
}

NEEDED = {
    "ingest": {"source": "new.csv"},
    "check": {"min_rows": 1},
    "commit": {"staged": ["file:/w/shop.db/orders/staged/staged-1"]},
    "delete": {"where": "id = 1"},
    "update": {"where": "id = 1", "set": {"item": "fig"}},
    "compact_database": {"database": "shop"},
    "maintain": {"database": "shop"},
    "tag": {"action": "create", "tag": "v1"},
    "rollback": {"as_of": "2024-01-31"},
}


def operators():
    modules = [path for each in get_provider_info()["operators"] for path in each["python-modules"]]
    found = [each for path in modules for each in vars(import_module(path)).values()]
    kinds = [each for each in found if isinstance(each, type) and "request" in vars(each)]
    assert all(issubclass(kind, LakeWarehouseJobOperator) for kind in kinds)
    return kinds


def rules_of(hint):
    """The types with a rule that a key takes."""
    if get_origin(hint) is Annotated:
        return [hint]
    return [rule for part in get_args(hint) for rule in rules_of(part)]


def is_choice(hint):
    """Return True if all values of a key are known."""
    if get_origin(hint) in (Union, UnionType):
        return all(map(is_choice, get_args(hint)))
    return hint in (bool, type(None)) or get_origin(hint) is Literal


# Keys without an argument: the operator names its task and its run.
SET_BY_THE_OPERATOR = {"ingested_by", "ingested_in"}
KEYS = [
    (kind, key)
    for kind in operators()
    for key in own_keys(kind.request)
    if key not in SET_BY_THE_OPERATOR
]
RULED = [
    pytest.param(kind, key, WRONG[rule], id=f"{kind.job}-{key}")
    for kind, key in KEYS
    for rule in rules_of(key_hints(kind.request)[key])
    if rule is not values.NullValues  # takes any list of strings
]
EVERY_KEY = [pytest.param(kind, key, id=f"{kind.job}-{key}") for kind, key in KEYS]


def asked(kind, **given):
    subject = {"table": "shop.orders"} if issubclass(kind, LakeJobOperator) else {}
    return {**subject, **NEEDED.get(kind.job, {}), **given}


def words_of_the_job(kind, key, value):
    with pytest.raises(lake.InvalidRequestError) as refused:
        read_request(kind.request, asked(kind, **{"warehouse": "w", key: value}))
    return in_words_of_a_dag(refused.value)


def test_all_operators_are_looked_at():
    assert len(operators()) == 18
    assert {*WRONG, values.NullValues} == {
        rule for kind, key in KEYS for rule in rules_of(key_hints(kind.request)[key])
    }


@pytest.mark.parametrize(("kind", "key"), EVERY_KEY)
def test_every_key_has_a_rule_or_a_choice_of_values_or_a_reason(kind, key):
    hint = key_hints(kind.request)[key]
    assert rules_of(hint) or is_choice(hint) or key in WITHOUT_RULE


@pytest.mark.parametrize(("kind", "key"), EVERY_KEY)
def test_a_literal_of_a_wrong_type_is_refused_by_name(kind, key):
    argument = {"executor": "bucket_executor"}.get(key, key)
    with pytest.raises(LakeArgumentError, match=f"task 't': argument '{argument}' must be"):
        kind(task_id="t", **asked(kind, **{argument: b"bytes"}))


@pytest.mark.parametrize(("kind", "key", "value"), RULED)
def test_a_wrong_literal_is_refused_in_the_words_of_the_job(kind, key, value):
    words = words_of_the_job(kind, key, value)
    assert f"argument '{key}' must be" in words

    with pytest.raises(LakeArgumentError) as refused:
        kind(task_id="t", **asked(kind, **{key: value}))
    assert str(refused.value) == f"task 't': {words}"


@pytest.mark.parametrize(("kind", "key", "value"), RULED)
def test_it_is_refused_beside_templates_and_in_mapped_tasks_too(kind, key, value):
    beside = {"lake_conn_id": "{{ params.lake }}", "where": "dt = '{{ ds }}'"}
    open_ones = {name: each for name, each in beside.items() if name in kind.template_fields}
    if "table" in kind.template_fields:
        open_ones["table"] = "{{ params.table }}"
    words = words_of_the_job(kind, key, value)
    with pytest.raises(LakeArgumentError) as refused:
        kind(task_id="t", **asked(kind, **{**open_ones, key: value}))
    assert str(refused.value) == f"task 't': {words}"

    with DAG("d", schedule=None), pytest.raises(LakeArgumentError) as refused:
        kind.partial(task_id="t", **{key: value})
    assert str(refused.value) == f"task 't': {words}"


@pytest.mark.parametrize(("kind", "key", "value"), RULED)
def test_a_template_that_renders_to_it_fails_for_good_before_anything_is_done(
    kind, key, value, warehouse
):
    task = kind(task_id="t", **asked(kind, **{key: "{{ value }}"}))
    task.render_template_fields({"value": value if isinstance(value, str) else repr(value)})
    if not isinstance(value, str):
        setattr(task, key, value)  # as a native template renders it
    with pytest.raises(AirflowFailException) as refused:
        task.execute(task_context())
    assert str(refused.value) == f"task 't': {words_of_the_job(kind, key, value)}"


def test_what_goes_together_is_asked_beside_a_template_of_the_table():
    with pytest.raises(LakeArgumentError, match="'consumer'"):
        LakeIngestOperator(task_id="t", table="{{ params.table }}", source_table="shop.items")


def test_another_table_is_named_as_the_first():
    with pytest.raises(LakeArgumentError, match="'source_table' must be database"):
        LakeIngestOperator(task_id="t", table="shop.orders", source_table="items", consumer="c")


FOR_ONE_ENGINE = [
    pytest.param(LakeCompactOperator, {"bucket_executor": "serial"}, "python", id="executor"),
    pytest.param(LakeIngestOperator, {"jdbc_url": "jdbc:x://vault/shop"}, "spark", id="jdbc"),
    pytest.param(LakeIngestOperator, {"jdbc_url": "postgresql://vault/shop"}, "python", id="sql"),
]


@pytest.mark.parametrize(("kind", "given", "engine"), FOR_ONE_ENGINE)
def test_what_is_for_one_engine_is_refused_with_the_other(kind, given, engine):
    """Without a word about it a connection may choose either."""
    source = {"jdbc_table": "orders"} if kind is LakeIngestOperator else {}
    [other] = {"python", "spark"} - {engine}
    for fitting in (engine, "auto"):
        kind(task_id="t", table="shop.orders", engine=fitting, **source, **given)
    with pytest.raises(LakeArgumentError, match=f"needs engine '{engine}'") as refused:
        kind(task_id="t", table="shop.orders", engine=other, **source, **given)
    assert "vault" not in str(refused.value)


OF_TIME = [
    pytest.param(kind, key, id=f"{kind.job}-{key}")
    for kind, key in KEYS
    for rule in rules_of(key_hints(kind.request)[key])
    if rule in (values.Moment, values.PastTime, values.Expiration)
]


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (0, "small for epoch milliseconds; it looks like seconds or a number of days"),
        (90, "small for epoch milliseconds; it looks like seconds or a number of days"),
        (
            1_700_000_000,
            "small for epoch milliseconds; it looks like seconds or a number of days",
        ),
        (1_700_000_000_000_000, "large for epoch milliseconds; it looks like microseconds"),
    ],
)
@pytest.mark.parametrize(("kind", "key"), OF_TIME)
def test_a_number_that_is_hardly_meant_as_milliseconds_is_no_moment(kind, key, number, why):
    words = words_of_the_job(kind, key, number)
    assert f"got {number}: it is too {why}" in words
    with pytest.raises(LakeArgumentError) as refused:
        kind(task_id="t", **asked(kind, **{key: number}))
    assert str(refused.value) == f"task 't': {words}"


@pytest.mark.parametrize(("kind", "key"), OF_TIME)
def test_epoch_milliseconds_are_a_moment(kind, key):
    made = kind(task_id="t", **asked(kind, **{key: 1_700_000_000_000}))
    assert getattr(made, key) == 1_700_000_000_000


OF_NAMES = [
    pytest.param(kind, key, id=f"{kind.job}-{key}")
    for kind, key in KEYS
    for rule in rules_of(key_hints(kind.request)[key])
    if rule is values.ConsumerName
]


@pytest.mark.parametrize("name", ["x" * 205, "é" * 103])
@pytest.mark.parametrize(("kind", "key"), OF_NAMES)
def test_a_name_that_is_too_long_for_a_file_is_refused(kind, key, name):
    words = words_of_the_job(kind, key, name)
    assert "is too long: it becomes part of a file name, so it must not have more than 204" in words
    with pytest.raises(LakeArgumentError) as refused:
        kind(task_id="t", **asked(kind, **{key: name}))
    assert str(refused.value) == f"task 't': {words}"


def test_a_share_may_be_the_whole_and_keys_may_be_none():
    [orphans] = [kind for kind in operators() if kind.job == "remove_orphans"]
    whole = orphans(task_id="t", table="shop.orders", max_share=1)
    assert read_request(whole.request, {"warehouse": "w", "table": "a.b", **whole._given()})
    LakeIngestOperator(
        task_id="t2", table="shop.orders", source="new.csv", create=True, primary_key=[]
    )
