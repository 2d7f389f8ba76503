# SPDX-License-Identifier: Apache-2.0
"""Prepares a job for another process: its arguments, its environment and its result file."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_lake.compat import AirflowFailException
from spark_jobs.job_requests.request import given_keys

if TYPE_CHECKING:
    from lakeformat.storage import Storage
    from spark_jobs.job_requests.common import JobRequest

__all__ = [
    "CATALOG_VARIABLE",
    "SOURCE_VARIABLE",
    "PreparedJob",
    "job_file",
    "open_text",
    "prepare_job",
]

CATALOG_VARIABLE = "LAKE_CATALOG_OPTIONS"
"""The environment variable that passes the catalog options of a connection to a driver, because
arguments are visible to other users.
"""
SOURCE_VARIABLE = "LAKE_SOURCE_OPTIONS"
"""The environment variable that passes the options of a SQL source to a driver."""

_TRAVELS = {
    "catalog_options": ("--catalog-options-env", CATALOG_VARIABLE),
    "source_options": ("--source-options-env", SOURCE_VARIABLE),
}

# Linux allows 128 KiB for one argument.
_LONGEST_ARGUMENT = 100_000


@dataclass(frozen=True, slots=True)
class PreparedJob:
    """A job that is ready for spark-submit, or for a separate Python process."""

    script: str
    words: list[str]
    environment: Mapping[str, str] = field(repr=False)
    result_uri: str
    options: Mapping[str, str] = field(repr=False)

    def result(self) -> dict[str, Any] | None:
        """Return the content of the job's result file; None if the file does not exist or cannot be
        read.
        """
        from lakeformat import LakeError
        from lakeformat.storage.base import LARGE_FILE

        try:
            storage, path = self._result_place()
            result = json.loads(storage.read(path, LARGE_FILE))
        except (LakeError, ValueError):
            return None
        return result if isinstance(result, dict) else None

    def forget_result(self) -> None:
        """Delete the result file of an earlier attempt."""
        storage, path = self._result_place()
        storage.delete(path)

    def _result_place(self) -> tuple[Storage, str]:
        from spark_jobs.runtime.job_files import open_place

        return open_place(self.result_uri, self.options)


def _refusal_of(private: Collection[str]) -> str:
    """Return the reason why a driver in deploy mode ``cluster`` cannot get the request keys in
    ``private``, whose values may be secrets.
    """
    words = {
        "catalog_options": "the options in the lake connection",
        "source_options": "source_options and the login of jdbc_conn_id",
    }
    moved = (
        "give the cluster itself access to the storage and remove the options from the connection, "
        "or "
    )
    return (
        f"{' and '.join(words[key] for key in private)} may contain secrets, so a driver gets them "
        "only in environment variables. Deploy mode 'cluster' does not pass these to the driver: "
        f"{'' if 'source_options' in private else moved}use deploy_mode='client'"
    )


def prepare_job(
    job: str,
    request: JobRequest,
    *,
    folder: str,
    name: str,
    result_folder: str | None = None,
    is_driver_elsewhere: bool = False,
) -> PreparedJob:
    """Return the job, with its private files in ``folder``. Only the owner of this directory can
    read it.

    ``name`` is part of the result file's name. It must be the same for every attempt of a task: a
    retry may find that the process of an earlier attempt still runs, and then reads its result.

    With ``is_driver_elsewhere``, raises ``AirflowFailException`` if the request has options that
    may be secrets, or is too long for an argument.
    """
    given = given_keys(request)
    private = {key: given[key] for key in _TRAVELS if given.get(key)}
    if private and is_driver_elsewhere:
        raise AirflowFailException(_refusal_of(private))
    result_uri = f"{(result_folder or folder).rstrip('/')}/{name}.json"
    text = open_text(request)
    if len(text.encode()) > _LONGEST_ARGUMENT:
        text = _written(text, Path(folder, "request.json"), is_driver_elsewhere)
    words = ["--request", text, "--result-uri", result_uri]
    for key in private:
        words += _TRAVELS[key]
    environment = {_TRAVELS[key][1]: json.dumps(each) for key, each in private.items()}
    options = dict(request.catalog_options or {})
    return PreparedJob(str(job_file(f"{job}.py")), words, environment, result_uri, options)


def open_text(request: JobRequest) -> str:
    """Return a request as JSON, without the options that may be secrets."""
    return json.dumps({k: v for k, v in given_keys(request).items() if k not in _TRAVELS})


def _written(text: str, place: Path, is_driver_elsewhere: bool) -> str:
    if is_driver_elsewhere:
        raise AirflowFailException(
            f"the request has {len(text.encode()):,} bytes, but an argument of a driver on a "
            f"cluster has at most {_LONGEST_ARGUMENT:,}: split the work into several tasks, or use "
            "deploy_mode='client'"
        )
    place.touch(mode=0o600)
    place.write_text(text, "utf-8")
    return str(place)


def job_file(name: str) -> Path:
    """Return the path of a file of the package ``spark_jobs``, without importing the package.

    Raises ``AirflowFailException`` if the package is not installed.
    """
    found = find_spec("spark_jobs")
    if found is None or not found.submodule_search_locations:
        raise AirflowFailException(
            "package spark_jobs is not installed: install airflow-provider-lake again"
        )
    return Path(found.submodule_search_locations[0], name)
