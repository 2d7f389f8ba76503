"""What the job ``ingest`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.job_requests.common import CommitRequest
from spark_jobs.request import SourceFormat

__all__ = ["IngestRequest"]


@dataclass(frozen=True, kw_only=True)
class IngestRequest(CommitRequest):
    """Append files to a table; with the same commit pair, once."""

    source: str
    """Path or glob of local files."""
    format: SourceFormat | None = None
    """What the files hold; by default their ending says it. JSON means one object per line."""
    create: bool = False
    """Whether an absent table, and its database, is made from the columns of the files."""
    stage: bool = False
    """Write the files of the table and leave their publication to the job ``commit``: the result
    names the staged result under ``staged``."""
