"""The context of a running task, without an Airflow around it."""

import json
from collections.abc import MutableMapping
from datetime import UTC, datetime
from types import SimpleNamespace

from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse


class TaskInstance(SimpleNamespace):
    """Keeps what is pushed, as the database would."""

    def __init__(self, **identity):
        named = {"dag_id": "shop", "run_id": "manual__1", "map_index": -1, "max_tries": 0}
        super().__init__(**(named | identity))
        self.xcoms = {}

    def xcom_push(self, key, value):
        self.xcoms[key] = value


class ByAsset(MutableMapping):
    """A value for each asset or alias, as in Airflow's contexts; Airflow 3.1 can hash neither."""

    def __init__(self, pairs=()):
        self._pairs = {}
        for asset, value in pairs:
            self[asset] = value

    @staticmethod
    def _key(asset):
        return type(asset), asset.name, getattr(asset, "uri", None)

    def __getitem__(self, asset):
        return self._pairs[self._key(asset)][1]

    def __setitem__(self, asset, value):
        self._pairs[self._key(asset)] = asset, value

    def __delitem__(self, asset):
        del self._pairs[self._key(asset)]

    def __iter__(self):
        return (asset for asset, _ in self._pairs.values())

    def __len__(self):
        return len(self._pairs)


class OutletEvents(ByAsset):
    """An event for each outlet that is asked for."""

    def __getitem__(self, outlet):
        if outlet not in self:
            self[outlet] = SimpleNamespace(extra={})
        return super().__getitem__(outlet)

    def __contains__(self, outlet):
        return self._key(outlet) in self._pairs


class StateStore(dict):
    """The state store that survives retries and clears; ``is_over`` once another try has begun."""

    is_over = False

    def set(self, key, value):
        if self.is_over:
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.GENERIC_ERROR))
        self[key] = json.loads(json.dumps(value))


def cleared(context):
    """Airflow clears a task: its next tries count as more than the task may have."""
    context["ti"].max_tries += 1
    return context


def task_context(task_id="work", *, try_number=1, **identity):
    """The context of a try of a run that has begun now."""
    return {
        "ti": TaskInstance(task_id=task_id, try_number=try_number, **identity),
        "dag_run": SimpleNamespace(start_date=datetime.now(UTC), clear_number=0),
        "outlet_events": OutletEvents(),
    }
