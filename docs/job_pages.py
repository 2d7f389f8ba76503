"""The page about jobs, made of the declarations of their requests."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, Field
from functools import cache
from typing import Any

from spark_jobs.job_requests.common import CommitKeys, JobRequest, TableRequest
from spark_jobs.job_requests.request import declared_keys, key_hints, wanted_text
from spark_jobs.runtime.job import Job
from spark_jobs.runtime.registry import JOB_NAMES, find_job

__all__ = ["jobs_page"]

_SHARED = (JobRequest, TableRequest, CommitKeys)

_HEAD = """\
A job is a function and a command: `spark_jobs.compact.run(request)` in a process that is there
already, `python -m spark_jobs.compact --request …` or `spark-submit … compact --request …` as one
of its own. [Shipping](shipping.md) says how it comes to a cluster.

The request is a JSON object, or the path or URI of a file with one. A key that is not declared
below is refused by name, and everything wrong with a request is said at once. `--result-uri`
leaves the result as a file, also that of a failure (`error`, `message`, `exit_code`, and where a
compaction failed at some buckets or tables, what became of the others).
`--catalog-options-env NAME` takes `catalog_options` from an environment variable, so that no
argument shows a secret, and `--source-options-env` does so for `source_options`.
`--watch-parent`, or `LAKE_WATCH_PARENT=1`, ends the job when the process that started it has died.

Standard output has `LAKE_PROGRESS {"done": …, "total": …, "unit": …}` while a job is at work, and
at its end one line `LAKE_REPORT {…}` with the result:

| member | what it says |
|---|---|
| `job`, `table` or `database` | what was done to what |
| `skipped` | nothing was to be done |
| `reason` | one sentence for the log: what happened, or why nothing did |
| `snapshot_id` | the last snapshot published; null if none was |
| `previous_snapshot_id` | the one before the first that was published; else the newest |
| `replayed` | an earlier try with the same commit pair had done it: this is what it did |
| `seconds` | how long it took |
| `report` | the library's own report; a list of more than 100 members is cut, and counted in \
`left_out` |

| exit code | meaning |
|---|---|
| 0 | done, or found done by an earlier try |
| 10 | nothing was to be done |
| 20 | other writers were first, again and again: run it again |
| 30 | the request is wrong: the same one will never work |
| 1 | anything else; what was done before is in the result if there is one |
| 143 | the process was told to end, or its parent had died |

Times are ISO-8601 texts (UTC unless they say a zone) or epoch milliseconds, and where an age makes
sense also texts as `"7 d"`.
"""


def jobs_page(generated: str) -> str:
    """Every job with its keys, and an example that a test runs."""
    lines = ["# Jobs", "", generated, "", _HEAD]
    for kind, of in zip(_SHARED, _OF, strict=True):
        lines += [f"## Keys {of}", "", *_table(kind, kind), ""]
    for name in JOB_NAMES:
        lines += [*_job(find_job(name)), ""]
    return "\n".join(lines).rstrip() + "\n"


_OF = ("of every job", "of jobs on one table", "of jobs that commit")


def _job(job: Job[Any]) -> Iterator[str]:
    summary = " ".join((job.request.__doc__ or "").split())
    shared = [of for kind, of in zip(_SHARED, _OF, strict=True) if issubclass(job.request, kind)]
    yield from (f"## `{job.name}`", "", summary, "")
    yield f"Besides the keys {', and '.join(shared)}:"
    yield from ("", *_table(job.request, None), "")
    yield from ("```json", json.dumps(dict(job.example)), "```")


def _table(request: type[Any], only: type[Any] | None) -> list[str]:
    """The keys a class declares itself, and those of parents that have no table of their own."""
    rows = ["| key | takes | default | meaning |", "|---|---|---|---|"]
    hints = key_hints(request)
    for key in declared_keys(request):
        owner = _owner(request, key.name)
        if owner is only or (only is None and owner not in _SHARED):
            rows.append(_row(key, hints[key.name], _meaning(owner)[key.name]))
    return rows


def _row(key: Field[Any], hint: Any, meaning: str) -> str:
    default = "" if key.default in (MISSING, None) else f"`{json.dumps(key.default)}`"
    needed = "**needed**" if key.default is MISSING else default
    return f"| `{key.name}` | {wanted_text(hint)} | {needed} | {meaning} |"


def _owner(request: type[Any], name: str) -> type[Any]:
    return next(kind for kind in request.__mro__ if name in vars(kind).get("__annotations__", ()))


@cache
def _meaning(kind: type[Any]) -> dict[str, str]:
    """The sentence below each key in the source."""
    [declaration] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(declaration, ast.ClassDef)
    found = {}
    for line, below in zip(declaration.body, declaration.body[1:], strict=False):
        if isinstance(line, ast.AnnAssign) and isinstance(below, ast.Expr):
            assert isinstance(line.target, ast.Name)
            assert isinstance(below.value, ast.Constant)
            found[line.target.id] = " ".join(str(below.value.value).replace("``", "`").split())
    return found
