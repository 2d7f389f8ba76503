"""What one job needs to go through spark-submit: its words, its environment, its result file."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

__all__ = ["OPTIONS_VARIABLE", "SparkRun", "prepared_run"]

OPTIONS_VARIABLE = "LAKE_CATALOG_OPTIONS"
"""The environment variable that carries the connection's options to a driver: no argument does."""

# Linux takes 128 KiB for one argument.
_LONGEST_ARGUMENT = 100_000


@dataclass(frozen=True, slots=True)
class SparkRun:
    """One job, ready to be submitted."""

    script: str
    words: list[str]
    environment: Mapping[str, str]
    result_uri: str | None
    options: Mapping[str, str]

    def result(self) -> dict[str, Any] | None:
        """What the job left in its result file; None if it left nothing that can be read."""
        from lakeformat import LakeError
        from spark_jobs.job_files import open_place

        if self.result_uri is None:
            return None
        try:
            storage, path = open_place(self.result_uri, self.options)
            result = json.loads(storage.read(path))
        except (LakeError, ValueError):
            return None
        return result if isinstance(result, dict) else None


@contextmanager
def prepared_run(
    job: str, request: Mapping[str, Any], *, result_uri: str | None, is_driver_elsewhere: bool
) -> Iterator[SparkRun]:
    """A run whose private files are gone afterwards."""
    options = dict(request.get("catalog_options") or {})
    if options and is_driver_elsewhere:
        raise AirflowFailException(
            "the connection has options, which reach a driver by its environment alone: in deploy "
            "mode 'cluster' leave them to the cluster, or use deploy_mode='client'"
        )
    with tempfile.TemporaryDirectory(prefix="lake-task-") as folder:  # for its owner alone
        if result_uri is None and not is_driver_elsewhere:
            result_uri = str(Path(folder, "result.json"))
        text = json.dumps({k: v for k, v in request.items() if k != "catalog_options"})
        if len(text.encode()) > _LONGEST_ARGUMENT:
            text = _written(text, Path(folder, "request.json"), is_driver_elsewhere)
        words = ["--request", text]
        if result_uri is not None:
            words += ["--result-uri", result_uri]
        if options:
            words += ["--catalog-options-env", OPTIONS_VARIABLE]
        environment = {OPTIONS_VARIABLE: json.dumps(options)} if options else {}
        yield SparkRun(_script_of(job), words, environment, result_uri, options)


def _written(text: str, place: Path, is_driver_elsewhere: bool) -> str:
    if is_driver_elsewhere:
        raise AirflowFailException(
            f"the request has {len(text)} characters, more than an argument of a driver elsewhere "
            "may have: do it in several tasks, or use deploy_mode='client'"
        )
    place.touch(mode=0o600)
    place.write_text(text, "utf-8")
    return str(place)


def _script_of(job: str) -> str:
    """The path of a job's script, which nobody has to import to know."""
    found = find_spec("spark_jobs")
    if found is None or not found.submodule_search_locations:
        raise AirflowFailException("the package spark_jobs is not installed beside this one")
    return str(Path(found.submodule_search_locations[0], f"{job}.py"))
