"""An operator whose job, in the task's own process, reports that it works and never ends."""

import os
import time
from pathlib import Path

from airflow_provider_lake.operators.health import LakeHealthOperator
from spark_jobs import health


def never_end(request):
    Path(os.environ["TEST_HERE"]).touch()
    while True:
        time.sleep(0.05)


health.run = never_end


class NeverEndingOperator(LakeHealthOperator):
    """Imported by the worker, so that its job is the one above there, too."""
