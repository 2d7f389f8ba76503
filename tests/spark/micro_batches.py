"""Spark's loop over micro-batches in one process, so that it can die between any two steps.

The steps and what is asked of a source in which order are those of ``MicroBatchExecution``: the
end of a batch is written down before it runs, and that it is done after the sink has committed.
A batch that was written down and is not done is run again when the query starts, with the same
number and end; its beginning is the end of the batch before or, of the first one, asked for anew.
A query that is started again first asks for the empty range from the last end to the last end: so
the source learns how far the query has come.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import lakeformat as lake
from spark_jobs.source.stream_reader import LakeStreamReader
from spark_jobs.source.writers import LakeStreamWriter

__all__ = ["Checkpoint", "Query"]

Offset = dict[str, Any]


@dataclass
class Checkpoint:
    """The state that survives the query."""

    offsets: list[str] = field(default_factory=list)
    done: int = 0
    """So many batches are."""


@dataclass
class Query:
    """One run of the query, from its checkpoint."""

    checkpoint: Checkpoint
    reader: LakeStreamReader
    writer: LakeStreamWriter
    before_step: Callable[[str], object] = lambda step: None
    """Called before everything that is written down; may end the run."""

    def run(self) -> None:
        """Until nothing is new."""
        kept = self.checkpoint
        if kept.offsets:
            seen = self._offset(len(kept.offsets) - 1)
            self.reader.partitions(seen, seen)
        while True:
            if len(kept.offsets) == kept.done:
                end = _json(self.reader.latestOffset())
                if kept.done and end == _json(self._offset(kept.done - 1)):
                    return
                self.before_step("write the end down")
                kept.offsets.append(end)
            start = self._offset(kept.done - 1) if kept.done else self.reader.initialOffset()
            self._batch(kept.done, start, self._offset(kept.done))
            self.before_step("write down that it is done")
            kept.done += 1

    def _batch(self, number: int, start: Offset, end: Offset) -> None:
        if number:
            self.reader.commit(start)
        parts = self.reader.partitions(start, end)
        rows = (batch for part in parts for batch in self.reader.read(part))
        answers = [self.writer.write(rows)]
        self.before_step("commit")
        try:
            self.writer.commit(answers, number)
        except lake.LakeError:
            self.writer.abort(answers, number)
            raise

    def _offset(self, number: int) -> Offset:
        found: Offset = json.loads(self.checkpoint.offsets[number])
        return found


def _json(offset: Offset) -> str:
    return json.dumps(offset, sort_keys=True)
