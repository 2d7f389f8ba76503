"""Times upserts, compaction and a read of one table format, and prints the timings as JSON.

Arguments: ours, deltalake or lance; the folder of the Arrow files; the folder for the table. The
environment of deltalake and lance has none of this library's modules, so this file imports only the
standard library, pyarrow and the library of the format.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

T = TypeVar("T")
KEY = "k"
ALIGNED = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)
"""Aligns the buffers of columns, as Rust requires."""


class Format(Protocol):
    """A table of one format, made at its first upsert."""

    def upsert(self, rows: pa.Table) -> None: ...

    def compact(self) -> None: ...

    def read(self) -> pa.Table: ...


class Ours:
    """A primary-key table with one bucket."""

    def __init__(self, place: Path) -> None:
        import lakeformat as lake

        self.catalog = lake.open_catalog(str(place))
        self.catalog.create_database("bench")
        self.table: Any = None

    def upsert(self, rows: pa.Table) -> None:
        if self.table is None:
            self.table = self.catalog.create_table(
                "bench.t", rows.schema, primary_key=[KEY], options={"bucket": "1"}
            )
        self.table.write(rows)

    def compact(self) -> None:
        self.table.compact()

    def read(self) -> pa.Table:
        return self.table.scan().to_arrow()


class Delta:
    """A Delta table; its upsert is a MERGE by key."""

    def __init__(self, place: Path) -> None:
        self.place = str(place)

    def upsert(self, rows: pa.Table) -> None:
        import deltalake

        if not deltalake.DeltaTable.is_deltatable(self.place):
            deltalake.write_deltalake(self.place, rows)
            return
        merge = deltalake.DeltaTable(self.place).merge(
            rows, f"t.{KEY} = s.{KEY}", source_alias="s", target_alias="t"
        )
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def compact(self) -> None:
        import deltalake

        deltalake.DeltaTable(self.place).optimize.compact()

    def read(self) -> pa.Table:
        import deltalake

        return pa.table(deltalake.DeltaTable(self.place).to_pyarrow_table())


class Lance:
    """A Lance dataset; its upsert is a merge insert by key."""

    def __init__(self, place: Path) -> None:
        self.place = f"{place}.lance"

    def upsert(self, rows: pa.Table) -> None:
        import lance

        if not Path(self.place).exists():
            lance.write_dataset(rows, self.place)
            return
        merge = lance.dataset(self.place).merge_insert(KEY)
        merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def compact(self) -> None:
        import lance

        lance.dataset(self.place).optimize.compact_files()

    def read(self) -> pa.Table:
        import lance

        return lance.dataset(self.place).to_table()


FORMATS: dict[str, Callable[[Path], Format]] = {"ours": Ours, "deltalake": Delta, "lance": Lance}


def main(name: str, batches: str, place: str) -> None:
    """Print the seconds of each phase, and a checksum of the rows."""
    table = FORMATS[name](Path(place))
    spent: dict[str, Sequence[float]] = {"upserts": [0.0, 0.0]}
    for path in sorted(Path(batches).glob("*.arrow")):
        with pa.OSFile(str(path), "rb") as source:
            rows = pa.ipc.open_file(source, options=ALIGNED).read_all()
        _, (cpu, wall) = timed(partial(table.upsert, rows))
        spent["upserts"] = [spent["upserts"][0] + cpu, spent["upserts"][1] + wall]
    _, spent["compact"] = timed(table.compact)
    found, spent["read"] = timed(table.read)
    seconds = pc.cast(pc.cast(found["ts"], pa.timestamp("us")), pa.int64())
    sums = [pc.sum(found[KEY]), pc.sum(found["amt"]), pc.sum(seconds), pc.sum(lengths(found))]
    answer = [found.num_rows, *(str(each.as_py()) for each in sums)]
    print(json.dumps({**spent, "rows": answer}))


def lengths(rows: pa.Table) -> pa.ChunkedArray:
    """Return the length of each text; the sum shows whether the right row of each key was kept."""
    return pc.binary_length(pc.cast(rows["s"], pa.string()))


def timed(work: Callable[[], T]) -> tuple[T, list[float]]:
    """Return the result of a call, and the CPU and wall seconds of all threads."""
    wall, cpu = time.perf_counter(), used()
    found = work()
    return found, [used() - cpu, time.perf_counter() - wall]


def used() -> float:
    """Return the CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main(*sys.argv[1:])
