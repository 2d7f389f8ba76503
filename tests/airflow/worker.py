"""The process of a task: it gets the signals that Airflow's task runner gets, and does the same.

``worker.py OPERATOR ARGUMENTS`` as JSON. A test sends SIGALRM where a timeout would be over,
SIGTERM where a user marks the task as failed, and SIGKILL where a worker is lost.
"""

import json
import signal
import sys
from datetime import UTC, datetime
from importlib import import_module

from airflow.sdk.execution_time.timeout import timeout

from tests.airflow.contexts import task_context
from tests.airflow.versions import AirflowTaskTimeout

NEVER_SECONDS = 3600
RUN_START = datetime(2026, 1, 1, tzinfo=UTC)
"""The start of the run: all workers of a test are tries of one run."""


def main(path, arguments):
    module, _, name = path.rpartition(".")
    task = getattr(import_module(module), name)(task_id="work", **json.loads(arguments))
    signal.signal(signal.SIGTERM, lambda *_: task.on_kill())
    context = task_context()
    context["dag_run"].start_date = RUN_START
    try:
        with timeout(NEVER_SECONDS):
            result = task.execute(context)
    except AirflowTaskTimeout:
        task.on_kill()
        raise
    print(f"RESULT {json.dumps(result)}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
