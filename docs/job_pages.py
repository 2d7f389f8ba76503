"""The page about jobs, generated from the declarations of their requests."""

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

_TIME = "[a time](#times-and-ages)"
# Shorter words than those of messages, which stand alone.
_TAKES = {
    "a non-empty string": "a string",
    "a list, each item a non-empty string": "a list of strings",
    "an object of column values or a list, each item an object of column values": (
        "an object, or a list of them"
    ),
    "a time such as '2024-01-31 10:00' or epoch milliseconds": _TIME,
    "a time such as '2024-01-31 10:00', an age such as '7 d', or epoch milliseconds": (
        f"{_TIME} or an age"
    ),
    "an age such as '7 d', a time such as '2024-01-31 10:00' or epoch milliseconds": (
        f"{_TIME} or an age"
    ),
    "a duration such as '10 s'": "[a duration](#times-and-ages)",
    "a position, as str(table.position()) returns it": "a position, from `table.position()`",
    "an object of table columns, each with a source column of its own": (
        "an object of column names"
    ),
    "an object with an age such as '1 d' for each column": "an object of ages",
    "an object with a new value for each column": "an object of values",
    "an object with a list for each column": "an object of lists",
    "a pattern with columns, such as '$dt $hour:00:00'": "a string",
    "the format of a time, such as 'yyyyMMdd'": "a string",
    "a table as database.table": "a string",
}

_SHARED = (JobRequest, TableRequest, CommitKeys)

_HEAD = """\
A job does one operation on a table, such as a compaction, for a scheduler or a cluster. This page
lists each job with the keys of its request. In Airflow use the [operators](operators.md), which
take most of these keys as arguments.

Each job is a function and a command:

- in your process: `spark_jobs.compact.run(request)`
- as a command: `python -m spark_jobs.compact --request …`
- on a cluster: `spark-submit … compact --request …`, see [shipping](shipping.md). The request needs
  `"engine": "spark"`: otherwise the driver works alone

`--request` takes a JSON object, or the path or URI of a file with one. `run` takes a dict with the
same keys, or the typed request, such as
`spark_jobs.job_requests.compact.CompactRequest(warehouse="warehouse", table="shop.orders")`. One
error lists the unknown, missing and wrong keys of a request. If the format of the table does not
support the job or one of the given keys, the job fails, and the error has advice. The default of
some keys is a table option: [Table options](reference/options.md) lists the options of Paimon
tables with their defaults.

The commands have these options:

| option | effect |
|---|---|
| `--result-uri URI` | writes the result to this path or URI; after a failure the file has \
`error`, `message`, `exit_code` and the result of the part that was finished, if any |
| `--catalog-options-env NAME` | reads `catalog_options` as a JSON object from an environment \
variable, so that no argument shows a secret |
| `--source-options-env NAME` | reads `source_options` in the same way |
| `--watch-parent`, or `LAKE_WATCH_PARENT=1` | ends the job when its parent process dies |

During the work the command may print lines `LAKE_PROGRESS {"done": …, "total": …, "unit": …}` to
standard output; `unit` names what is counted, such as `files`. At its end the command prints one
line `LAKE_REPORT {…}` with the result; `run` returns the same result. After a failure the error is
on standard error, and the line `LAKE_REPORT` is printed only if a part of the work was done. The
result has these members:

| member | meaning |
|---|---|
| `job`, and `table` or `database` | the operation and its target |
| `skipped` | true if there was nothing to do |
| `reason` | one sentence for the log: the result, or why there was nothing to do |
| `snapshot_id` | the last snapshot that the job published; after `rollback` of an Iceberg table \
the snapshot to which its branch was set. It is null if there is no such snapshot, and for a job \
on databases |
| `previous_snapshot_id` | the snapshot before the first one that the job published; if the job \
published none, the newest snapshot before the job. It is null if there is no such snapshot, for a \
job on databases, for a dry run of `ingest`, and if `ingest` finds no new file for its \
`checkpoint` |
| `replayed` | true if an earlier attempt with the same \
[commit identity](#keys-of-jobs-that-commit) had published the commit; for `analyze` of an Iceberg \
table also if its newest snapshot had these statistics already |
| `seconds` | the duration |
| `report` | the library's own report. Lists are cut to 100 members; `left_out` has, for each cut \
list, the number of omitted members |
| `staged` | only from two jobs. From `ingest` with `stage`: the address of the \
[staged result](ingest.md#staging) for the job `commit`. From `check` with `staged`: the list of \
addresses that were checked |
| `next_snapshot` | only from `ingest` with `source_table`: the number of the snapshot of the \
source table that the next run reads first |

| exit code | meaning |
|---|---|
| 0 | done, now or by an earlier attempt |
| 10 | nothing to do |
| 20 | conflicts with other writers: run the job again; with `read_snapshot`, first compute the \
rows again |
| 30 | wrong request: a retry cannot help |
| 1 | any other error, failed checks, a [verdict](health.md) that `fail_when` does not allow, \
or a result that cannot be written to `--result-uri`; if a part of the work was done, the result \
describes that part |
| 143 | stopped by SIGTERM, or because the parent process died; no result is written |

## Times and ages

A time is ISO-8601 text, such as `"2024-01-31 10:00"` (UTC unless it has a zone), or a number of
epoch milliseconds. An age or a duration is text such as `"7 d"` or `"10 s"`.
"""


def jobs_page(generated: str) -> str:
    """Return the page: every job with its keys, and an example that a test runs."""
    lines = ["# Jobs", "", generated, "", _HEAD]
    for kind, of in zip(_SHARED, _OF, strict=True):
        lines += [f"## Keys {of}", "", *_table(kind, kind), ""]
    for name in JOB_NAMES:
        lines += [*_job(find_job(name)), ""]
    page = "\n".join(lines).rstrip() + "\n"
    return page.replace("staged results", "[staged results](ingest.md#staging)")


_OF = ("of every job", "of jobs on one table", "of jobs that commit")


def _job(job: Job[Any]) -> Iterator[str]:
    summary = " ".join((job.request.__doc__ or "").split())
    shared = [of for kind, of in zip(_SHARED, _OF, strict=True) if issubclass(job.request, kind)]
    yield from (f"## `{job.name}`", "", summary, "")
    *before, last = (f"of [{of[3:]}](#keys-{of.replace(' ', '-')})" for of in shared)
    yield f"The job takes the keys {', '.join(before)}{' and ' if before else ''}{last}, and these:"
    yield from ("", *_table(job.request, None))
    yield ""
    yield from ("```json", json.dumps(dict(job.example)), "```")


def _table(request: type[Any], only: type[Any] | None) -> list[str]:
    """Return a table of the keys that the class ``only`` declares; ``only=None`` takes the keys
    that no shared class declares.
    """
    rows = ["| key | takes | default | meaning |", "|---|---|---|---|"]
    hints = key_hints(request)
    for key in declared_keys(request):
        owner = _owner(request, key.name)
        if owner is only or (only is None and owner not in _SHARED):
            rows.append(_row(key, hints[key.name], _meaning(owner)[key.name]))
    return rows


def _row(key: Field[Any], hint: Any, meaning: str) -> str:
    default = "" if key.default in (MISSING, None) else f"`{json.dumps(key.default)}`"
    needed = "**required**" if key.default is MISSING else default
    wanted = wanted_text(hint)
    takes = _TAKES.get(wanted, wanted)
    takes = takes.replace(" or ", ", ", takes.count(" or ") - 1)
    return f"| `{key.name}` | {takes} | {needed} | {meaning} |"


def _owner(request: type[Any], name: str) -> type[Any]:
    return next(kind for kind in request.__mro__ if name in vars(kind).get("__annotations__", ()))


@cache
def _meaning(kind: type[Any]) -> dict[str, str]:
    """Return the docstring of each key that the class ``kind`` declares, by key."""
    [declaration] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(declaration, ast.ClassDef)
    found = {}
    for line, below in zip(declaration.body, declaration.body[1:], strict=False):
        if isinstance(line, ast.AnnAssign) and isinstance(below, ast.Expr):
            assert isinstance(line.target, ast.Name)
            assert isinstance(below.value, ast.Constant)
            found[line.target.id] = " ".join(str(below.value.value).replace("``", "`").split())
    return found
