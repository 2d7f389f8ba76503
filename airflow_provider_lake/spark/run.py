"""What one job needs to go through spark-submit: its words, its environment, its result file."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from lakeformat.storage import Storage

__all__ = ["CATALOG_VARIABLE", "SOURCE_VARIABLE", "SparkRun", "job_file", "prepared_run"]

CATALOG_VARIABLE = "LAKE_CATALOG_OPTIONS"
"""The environment variable that carries the connection's options to a driver: no argument does."""
SOURCE_VARIABLE = "LAKE_SOURCE_OPTIONS"
"""The same for the options of a SQL database that rows come from."""

_TRAVELS = {
    "catalog_options": ("--catalog-options-env", CATALOG_VARIABLE),
    "source_options": ("--source-options-env", SOURCE_VARIABLE),
}

# Linux takes 128 KiB for one argument.
_LONGEST_ARGUMENT = 100_000


@dataclass(frozen=True, slots=True)
class SparkRun:
    """One job, ready to be submitted."""

    script: str
    words: list[str]
    environment: Mapping[str, str] = field(repr=False)
    result_uri: str
    options: Mapping[str, str] = field(repr=False)

    def result(self) -> dict[str, Any] | None:
        """What the job left in its result file; None if it left nothing that can be read."""
        from lakeformat import LakeError
        from lakeformat.storage.base import LARGE_FILE

        try:
            storage, path = self._result_place()
            result = json.loads(storage.read(path, LARGE_FILE))
        except (LakeError, ValueError):
            return None
        return result if isinstance(result, dict) else None

    def forget_result(self) -> None:
        """Remove the result of an earlier submission."""
        storage, path = self._result_place()
        storage.delete(path)

    def _result_place(self) -> tuple[Storage, str]:
        from spark_jobs.runtime.job_files import open_place

        return open_place(self.result_uri, self.options)


@contextmanager
def prepared_run(
    job: str,
    request: Mapping[str, Any],
    *,
    name: str,
    result_folder: str | None,
    is_driver_elsewhere: bool,
) -> Iterator[SparkRun]:
    """A run whose private files are gone afterwards.

    ``name`` is the same for every try of a task: a retry may find the first one's driver at work.
    """
    private = {key: request[key] for key in _TRAVELS if request.get(key)}
    if private and is_driver_elsewhere:
        raise AirflowFailException(
            f"{' and '.join(private)} reach a driver by its environment alone: in deploy mode "
            "'cluster' leave them to the cluster, or use deploy_mode='client'"
        )
    with tempfile.TemporaryDirectory(prefix="lake-task-") as folder:  # for its owner alone
        result_uri = f"{(result_folder or folder).rstrip('/')}/{name}.json"
        text = json.dumps({k: v for k, v in request.items() if k not in _TRAVELS})
        if len(text.encode()) > _LONGEST_ARGUMENT:
            text = _written(text, Path(folder, "request.json"), is_driver_elsewhere)
        words = ["--request", text, "--result-uri", result_uri]
        for key in private:
            words += _TRAVELS[key]
        environment = {_TRAVELS[key][1]: json.dumps(each) for key, each in private.items()}
        options = dict(request.get("catalog_options") or {})
        yield SparkRun(str(job_file(f"{job}.py")), words, environment, result_uri, options)


def _written(text: str, place: Path, is_driver_elsewhere: bool) -> str:
    if is_driver_elsewhere:
        raise AirflowFailException(
            f"the request has {len(text)} characters, more than an argument of a driver elsewhere "
            "may have: do it in several tasks, or use deploy_mode='client'"
        )
    place.touch(mode=0o600)
    place.write_text(text, "utf-8")
    return str(place)


def job_file(name: str) -> Path:
    """Where a file of the package of jobs is, which nobody has to import to know."""
    found = find_spec("spark_jobs")
    if found is None or not found.submodule_search_locations:
        raise AirflowFailException("the package spark_jobs is not installed beside this one")
    return Path(found.submodule_search_locations[0], name)
