"""What a task gets when it runs, without an Airflow around it."""

from datetime import UTC, datetime
from types import SimpleNamespace


class TaskInstance(SimpleNamespace):
    """Keeps what is pushed, as the database would."""

    def __init__(self, **identity):
        super().__init__(dag_id="shop", run_id="manual__1", map_index=-1, **identity)
        self.xcoms = {}

    def xcom_push(self, key, value):
        self.xcoms[key] = value


class OutletEvents(dict):
    """An event for each outlet that is asked for."""

    def __missing__(self, outlet):
        self[outlet] = SimpleNamespace(extra={})
        return self[outlet]


def task_context(task_id="work"):
    """The context of the first try of a run that has begun now."""
    return {
        "ti": TaskInstance(task_id=task_id),
        "dag_run": SimpleNamespace(start_date=datetime.now(UTC), clear_number=0),
        "outlet_events": OutletEvents(),
    }
