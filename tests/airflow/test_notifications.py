"""The health of a table reaches people through any notifier, also if it cannot be read."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest
from airflow.sdk import DAG

from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.notifications.health import LakeHealthNotifier
from tests.airflow.chat import SENT, AsyncChat, Chat
from tests.airflow.conftest import TEST_DAGS
from tests.airflow.test_dags import MIDNIGHT
from tests.airflow.versions import AsyncCallback, DeadlineAlert, DeadlineReference


@pytest.fixture(autouse=True)
def sent():
    SENT.clear()
    return SENT


def of_task(table="shop.orders"):
    ti = SimpleNamespace(task_id="land", dag_id="shop", run_id="r1", map_index=-1)
    return {"ti": ti, "task": SimpleNamespace(table=table, lake_conn_id="lake_default")}


def of_deadline():
    return {
        "dag_run": {"dag_id": "shop", "run_id": "r1"},
        "deadline": {"id": "1", "deadline_time": "2024-01-31 10:00:00+00:00"},
    }


def test_people_read_the_table_its_verdict_score_reasons_and_advice(orders, sent):
    for number in range(12):
        orders.write(pa.table({"id": [number], "item": ["tea"]}))

    LakeHealthNotifier(notifier=Chat())(of_task())

    [text] = sent
    assert re.fullmatch(
        r"Task land of DAG shop, run r1: table shop\.orders is degraded, score \d+ of 100: "
        r"12 of 12 files, .* are smaller than .*: lake compact shop\.orders\.",
        text,
    )


def test_the_members_of_the_health_can_be_placed_in_a_text(orders, sent):
    text = "{{ lake_health.table }}: {{ lake_health.verdict }} ({{ lake_health.score }})"

    LakeHealthNotifier(notifier=Chat(text), table="shop.{{ params.name }}")(
        {**of_task(table=None), "params": {"name": "orders"}}
    )

    assert sent == ["shop.orders: empty (100)"]


def test_a_notifier_is_rendered_anew_for_each_task(orders, sent):
    notifier = LakeHealthNotifier(notifier=Chat())
    for run_id in ("r1", "r2"):
        context = of_task()
        context["ti"].run_id = run_id
        notifier(context)

    assert [text.split(": ")[0] for text in sent] == [
        "Task land of DAG shop, run r1",
        "Task land of DAG shop, run r2",
    ]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("shop.lost", "the health of table shop.lost is unknown: NotFoundError: "),
        (
            None,
            "the health is unknown, because no table is known: pass 'table' to LakeHealthNotifier.",
        ),
    ],
)
def test_people_are_notified_although_the_health_is_unknown(catalog, sent, table, reason):
    LakeHealthNotifier(notifier=Chat())(of_task(table))

    [text] = sent
    assert text.startswith(f"Task land of DAG shop, run r1: {reason}")


@pytest.mark.parametrize("table", ["shop.lost", None])
def test_every_member_can_be_used_although_the_health_is_unknown(catalog, sent, table):
    """The templates of a DAG refuse undefined names."""
    text = "{{ lake_health.verdict }} {{ lake_health.score }} {{ lake_health.reasons }}"
    with DAG("shop") as dag:
        LakeHealthNotifier(notifier=Chat(text))({**of_task(table), "dag": dag})

    assert sent == ["unknown None []"]


def test_a_message_that_may_hold_secrets_is_not_sent(orders, sent, monkeypatch):
    def fail(*given, **named):
        raise RuntimeError("password=hush")

    monkeypatch.setattr("airflow_provider_lake.hooks.lake.LakeHook.health", fail)

    LakeHealthNotifier(notifier=Chat())(of_task())

    assert sent == [
        "Task land of DAG shop, run r1: the health of table shop.orders is unknown: RuntimeError."
    ]


@pytest.mark.parametrize(("kind", "start"), [(Chat, ""), (AsyncChat, "async: ")])
def test_a_missed_deadline_notifies_from_the_triggerer(orders, sent, kind, start):
    """Airflow stores the arguments as JSON, and awaits the notifier with a short context."""
    arguments = {
        "table": "shop.orders",
        "notifier": f"{kind.__module__}.{kind.__qualname__}",
        "notifier_args": {"text": "{{ lake_health.sentence }}"},
    }
    alert = DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(hours=1),
        callback=AsyncCallback(LakeHealthNotifier, kwargs=arguments),
    )

    async def miss():
        await LakeHealthNotifier(**alert.callback.kwargs, context=of_deadline())

    asyncio.run(miss())

    assert sent == [
        f"{start}DAG shop, run r1, missed its deadline 2024-01-31 10:00:00+00:00: "
        "table shop.orders is empty, score 100 of 100: no problems found."
    ]


def test_a_failed_task_of_a_real_run_notifies_about_its_table(airflow_db, orders, sent):
    orders.write(pa.table({"id": [1, 1], "item": ["tea", "tea"]}))
    from tests.airflow.versions import DagBag

    dag = DagBag(str(TEST_DAGS / "notified.py")).dags["notified"]

    finished = dag.test(logical_date=MIDNIGHT, run_after=MIDNIGHT)

    assert finished.state == "failed"
    [text] = sent
    assert text.startswith("Task check of DAG notified, run manual__2024-02-01")
    assert "table shop.orders is healthy" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"notifier": "slack"}, "must be a notifier such as"),
        ({"notifier": Chat}, "must be a notifier such as"),
        ({"notifier": Chat(), "notifier_args": {"text": "x"}}, "has its arguments already"),
    ],
)
def test_a_value_that_is_no_notifier_is_refused_when_the_dag_is_parsed(arguments, message):
    with pytest.raises(LakeArgumentError, match=message):
        LakeHealthNotifier(**arguments)
