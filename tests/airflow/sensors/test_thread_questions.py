"""A blocking call in a triggerer asks Airflow through the triggerer's own loop.

In Airflow 3.1 a question from any other loop ends the whole triggerer, with all its triggers.
"""

import asyncio
import json

import pyarrow as pa
import pytest
from airflow.sdk import BaseHook
from asgiref.sync import async_to_sync

from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.triggers.snapshot_event import LakeSnapshotEventTrigger
from airflow_provider_lake.triggers.table import LakeSnapshotTrigger


async def this_loop():
    return asyncio.get_running_loop()


@pytest.fixture
def asked(monkeypatch, warehouse):
    """The loops that were asked for a connection, as the triggerer of Airflow 3.1 is."""
    loops = []

    def asking(conn_id):
        loops.append(async_to_sync(this_loop)())
        return BaseHook.get_connection(conn_id)

    connection = {"conn_type": "lake", "extra": {"warehouse": warehouse}}
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps(connection))
    monkeypatch.setattr(LakeHook, "get_connection", staticmethod(asking))
    return loops


def event_of(trigger):
    async def first():
        return await anext(aiter(trigger.run()))

    return first


@pytest.mark.parametrize(
    "wait",
    [
        event_of(LakeSnapshotTrigger(table="shop.orders", lake_conn_id="shop")),
        event_of(
            LakeSnapshotEventTrigger(table="shop.orders", lake_conn_id="shop", after_snapshot=0)
        ),
    ],
    ids=["a trigger of a task", "a watcher"],
)
def test_a_trigger_reads_its_connection_through_its_own_loop(wait, asked, catalog):
    catalog.create_table("shop.orders", [("id", "BIGINT")]).write(pa.table({"id": [1]}))

    async def waited():
        return await asyncio.wait_for(wait(), 60), asyncio.get_running_loop()

    event, own = asyncio.run(waited())

    assert event.payload.get("status") != "refused"
    assert asked
    assert {*asked} == {own}
