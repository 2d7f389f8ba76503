# SPDX-License-Identifier: Apache-2.0
"""The command line of every job: takes a request, and prints the result as a marked line of JSON.

=====  ==========================================================
code   meaning
=====  ==========================================================
0      done
10     there was nothing to do
20     repeated conflicts with other writers: run the job again;
       with ``read_snapshot``, first compute the rows again
30     the request is wrong: change it, a retry does not help
1      any other failure
143    the process was ended: by SIGTERM, or because its parent died
=====  ==========================================================
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from lakeformat.rows.freed_memory import keep_freed_memory
from lakeformat.rows.without_pandas import hide_pandas
from spark_jobs.job_requests.common import JobRequest
from spark_jobs.job_requests.request import JsonObject, read_request, refusal, shown
from spark_jobs.runtime.failure_text import failure_text
from spark_jobs.runtime.job import Job, JobResult
from spark_jobs.runtime.job_files import read_request_text, write_result
from spark_jobs.runtime.log_lines import log_lines
from spark_jobs.runtime.progress import progress_lines
from spark_jobs.runtime.watchdog import ENDED, ending_cleanly, is_ending, watch_parent

__all__ = ["CONFLICT", "REPORT_MARKER", "help_example", "run_command"]

REPORT_MARKER = "LAKE_REPORT "
"""The beginning of the line with the result, on standard output."""

DONE = 0
FAILED = 1
NOTHING_TO_DO = 10
CONFLICT = 20
INVALID_REQUEST = 30

_SHORTEST_HIDDEN = 5
"""The length of the shortest credential that is hidden; Airflow has the same limit by default."""
_CATALOG_OPTIONS = "catalog_options"
_SOURCE_OPTIONS = "source_options"

_Request = TypeVar("_Request", bound=JobRequest)
_RunJob = Callable[[_Request], JobResult]


def run_command(job: Job[_Request], run: _RunJob[_Request], arguments: list[str] | None) -> int:
    """Run a job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    words = _parser(job).parse_args(arguments)
    if words.watch_parent or os.environ.get("LAKE_WATCH_PARENT") == "1":
        watch_parent()
    keep_freed_memory()
    with ending_cleanly(), log_lines(), progress_lines():
        return _run_request(job, run, words, is_own_process=arguments is None)


def help_example(job: Job[Any]) -> list[str]:
    """Return the words of an example command, for the help of a job."""
    return ["python", "-m", f"spark_jobs.{job.name}", "--request", json.dumps(dict(job.example))]


def _run_request(
    job: Job[_Request],
    run: _RunJob[_Request],
    words: argparse.Namespace,
    *,
    is_own_process: bool,
) -> int:
    options: Mapping[str, str] | None = None
    secrets: Mapping[str, Mapping[str, str]] = {}
    try:
        secrets = _secrets(words)
        options = secrets.get(_CATALOG_OPTIONS)
        given = _request(words.request, secrets)
        options = given.get(_CATALOG_OPTIONS)
        wanted = read_request(job.request, given)
        if is_own_process and wanted.engine == "python":
            hide_pandas()
        result = run(wanted)
        code = NOTHING_TO_DO if result["skipped"] else DONE
    except Exception as error:
        if is_ending():  # caused by the end of the process, such as a closed pipe
            raise SystemExit(ENDED) from error
        code = _explain(job.name, error, secrets)
        result = _failure(job.name, error, code, secrets)
        if getattr(error, "result", None) is not None:
            print(f"{REPORT_MARKER}{json.dumps(result)}", flush=True)
    else:
        print(f"{REPORT_MARKER}{json.dumps(result)}", flush=True)
    if _kept(job.name, words.result_uri, result, options, secrets):
        return code
    return FAILED if code in (DONE, NOTHING_TO_DO) else code


def _kept(
    name: str,
    uri: str | None,
    result: JobResult,
    options: Mapping[str, str] | None,
    secrets: Mapping[str, Mapping[str, str]],
) -> bool:
    """Write the result to its URI, if there is one, and return True. If the write fails, print the
    error and return False.
    """
    if uri is None:
        return True
    try:
        write_result(uri, result, options)
    except Exception as error:  # noqa: BLE001 - printed, because the work is done
        _explain(name, error, secrets)
        return False
    return True


def _request(given: str, secrets: Mapping[str, Mapping[str, str]]) -> JsonObject:
    """Return the request in ``given``: a JSON object, or the path of a file with one. Add the
    options in ``secrets``, which come from the environment.

    Raise ``InvalidRequestError`` if the request is not a JSON object, or if it has options that are
    also in the environment.
    """
    try:
        request = json.loads(read_request_text(given, secrets.get(_CATALOG_OPTIONS)))
    except ValueError as reason:
        raise refusal(f"--request, or the file that it names, is not JSON: {reason}") from None
    if not isinstance(request, dict):
        raise refusal(f"--request must be a JSON object, got {shown(Mapping, request)}")
    for key in secrets:
        if key in request:
            raise refusal(f"{key} is in the request and in the environment: give it only once")
    return {**request, **{key: dict(options) for key, options in secrets.items()}}


def _secrets(words: argparse.Namespace) -> dict[str, Mapping[str, str]]:
    named = {
        _CATALOG_OPTIONS: words.catalog_options_env,
        _SOURCE_OPTIONS: words.source_options_env,
    }
    return {key: _of_environment(name) for key, name in named.items() if name is not None}


def _of_environment(name: str) -> dict[str, str]:
    """Return the options in an environment variable. Raise ``InvalidRequestError`` if the variable
    is not a JSON object of strings; the message does not show its value.
    """
    if name not in os.environ:
        raise refusal(f"environment variable {name} is not set: set it to a JSON object of options")
    try:
        options = json.loads(os.environ[name])
    except ValueError:
        options = None
    if not isinstance(options, dict) or not all(isinstance(v, str) for v in options.values()):
        raise refusal(f"environment variable {name} must be a JSON object of strings")
    return options


def _without(secrets: Mapping[str, Mapping[str, str]], text: str) -> str:
    """Return ``text`` with ``***`` in place of credentials in the options from the environment,
    because the error of a store or a driver may contain one of them.
    """
    from lakeformat.storage.shown import secrets_in
    from lakeformat.tables.credential_options import shown_option

    for key, value in (each for options in secrets.values() for each in options.items()):
        hidden = {value: shown_option(key, value)}
        hidden |= {secret: "***" for secret in secrets_in(value) if secret != value}
        for secret, instead in hidden.items():
            if len(secret) >= _SHORTEST_HIDDEN:
                text = text.replace(secret, instead)
    return text


def _explain(name: str, error: Exception, secrets: Mapping[str, Mapping[str, str]]) -> int:
    from lakeformat import CommitConflictError, InvalidRequestError, LakeError

    said = f"{name}: {type(error).__name__}: {failure_text(error)}"
    if not isinstance(error, LakeError):  # unexpected: show the traceback
        said = "".join([*traceback.format_exception(error), said])
    print(_without(secrets, said), file=sys.stderr, flush=True)
    if isinstance(error, InvalidRequestError):
        return INVALID_REQUEST
    is_conflict = isinstance(error, CommitConflictError) or getattr(error, "is_conflict", False)
    return CONFLICT if is_conflict else FAILED


def _failure(
    name: str, error: Exception, code: int, secrets: Mapping[str, Mapping[str, str]]
) -> JobResult:
    """Return the result of a failed job: its error and, if a part was done, the result of this
    part.
    """
    done = getattr(error, "result", None) or {"job": name}
    message = _without(secrets, failure_text(error))
    failed = {"error": type(error).__name__, "message": message, "exit_code": code}
    if getattr(error, "is_final", False):
        failed["is_final"] = True
    return {**done, **failed}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit with the code of a wrong request, 30."""
        self.print_usage(sys.stderr)
        self.exit(INVALID_REQUEST, f"{self.prog}: {message}\n")


def _parser(job: Job[Any]) -> argparse.ArgumentParser:
    *words, request = help_example(job)
    parser = _Parser(
        prog=job.name,
        description=(job.request.__doc__ or "").strip(),
        epilog=f"An example:\n\n  {' '.join(words)} '{request}'\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--request",
        required=True,
        metavar="JSON|PATH|URI",
        help="a JSON object, or a file with one; docs/jobs.md has the keys",
    )
    parser.add_argument(
        "--result-uri", metavar="URI", help="also write the result here, even after a failure"
    )
    parser.add_argument(
        "--catalog-options-env",
        metavar="NAME",
        help="an environment variable with catalog_options as JSON, so that no argument shows them",
    )
    parser.add_argument(
        "--source-options-env",
        metavar="NAME",
        help="an environment variable with source_options as JSON, for ingest",
    )
    parser.add_argument(
        "--watch-parent",
        action="store_true",
        help="exit with 143 when the parent process dies; the same as LAKE_WATCH_PARENT=1",
    )
    return parser
