"""Measures the storage's share of a commit's time, on local disk and on a bucket on loopback.

``python -m benchmarks.commit_share [COMMITS]`` makes that many commits to a table of 10,000 files
on each storage, and writes ``results/commit_share.md``. The remaining time is the library's own.
"""

from __future__ import annotations

import tempfile
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.asked_size import asked_size
from benchmarks.questions.commit_append import empty_table, message_of
from benchmarks.timed_storage import TimedStorage
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.storage import LocalStorage, Storage
from lakeformat.storage.address import open_storage
from tests.conformance.s3_server import options_for, running_s3_server

__all__ = ["Answer", "ask"]

COMMITS, FILES, FILES_PER_COMMIT = 200, 10_000, 100
RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True, slots=True)
class Answer:
    """The milliseconds of a commit, and the part of this time in which it waits for the storage."""

    milliseconds: float
    share: float


def ask(storage: Storage, root: str, *, commits: int) -> Answer:
    """Measure commits of one file each to a table of 10,000 files."""
    timed = TimedStorage(storage)
    handle = empty_table(timed, root)
    for _ in range(FILES // FILES_PER_COMMIT):
        commit_messages(handle, [message_of(FILES_PER_COMMIT)], CommitOptions())
    took, waited = [], []
    for _ in range(commits):
        messages, timed.seconds, began = [message_of(1)], 0.0, perf_counter()
        commit_messages(handle, messages, CommitOptions())
        took.append(perf_counter() - began)
        waited.append(timed.seconds)
    shares = [wait / whole for wait, whole in zip(waited, took, strict=True)]
    return Answer(median(took) * 1000, median(shares))


def on_local_disk(commits: int) -> Answer:
    """Measure in a temporary directory."""
    with tempfile.TemporaryDirectory() as folder:
        return ask(LocalStorage(), f"{folder}/orders", commits=commits)


def on_a_bucket(commits: int) -> Answer:
    """Measure on a server of this machine, so that no network adds time."""
    with running_s3_server() as endpoint:
        new = urllib.request.Request(f"{endpoint}/warehouse", method="PUT")
        urllib.request.urlopen(new, timeout=10).close()
        storage, root = open_storage("s3://warehouse/orders", options_for(endpoint))
        return ask(storage, root, commits=commits)


def report(answers: dict[str, Answer], commits: int) -> str:
    """Return the answer as a page."""
    lines = [
        "# How much of a commit is waiting for the storage?",
        "",
        f"{commits} commits each add one file to a table of {FILES:,} files. All numbers are",
        "medians. [What a commit costs](../../docs/commit-cost.md) lists a commit's storage calls.",
        "The time outside these calls is the library's own.",
        "",
        "| storage | a commit, ms | in the storage's calls |",
        "|---|---|---|",
    ]
    lines += [
        f"| {name} | {answer.milliseconds:.1f} | {answer.share:.0%} |"
        for name, answer in answers.items()
    ]
    day = datetime.now(UTC).date()
    return "\n".join([*lines, "", f"`python -m benchmarks.commit_share {commits}`, {day}."]) + "\n"


def main(commits: int) -> None:
    """Measure, and write the page."""
    answers = {"local disk": on_local_disk(commits), "S3 on loopback": on_a_bucket(commits)}
    page = report(answers, commits)
    (RESULTS / "commit_share.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main(asked_size(__doc__, "COMMITS", COMMITS))
