"""TIMESTAMP_LTZ in ORC files of JVMs outside UTC: reading, leaving files out, writing them anew."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.paimon.read.plan import plan_files
from lakeformat.types.java_zones import zone_offsets
from tests.golden.foreign import expected_of, unpack_foreign

ZONES = ("utc", "asia_shanghai", "america_new_york")
FORMATS = ("orc_true", "orc_false", "parquet_true", "avro_true")
GMT = b"\x1a\x03GMT"
"""The zone in the footer of a stripe that Arrow wrote."""
HOUR = timedelta(hours=1)
NOON = datetime(2024, 7, 3, 12, tzinfo=UTC)

JAVA_OFFSETS = {
    "Asia/Shanghai": [28800, 28800, 29143, 29143, 28800, 28800, 28800, 28800, 28800],
    "America/New_York": [-18000, -18000, -18000, -18000, -18000, -14400, -18000, -14400, -18000],
    "Australia/Lord_Howe": [37800, 37800, 36000, 36000, 36000, 36000, 39600, 37800, 39600],
    "Europe/Dublin": [0, 0, -1521, -1521, -1521, 3600, 0, 3600, 0],
    "Pacific/Apia": [46800, 46800, -41216, -41216, -41216, -41400, 46800, 46800, 46800],
    "Africa/Casablanca": [0, 0, -1820, -1820, -1820, 0, 3600, 3600, 3600],
    "GMT+08:00": [28800] * 9,
    "PST": [-28800, -28800, -28800, -28800, -28800, -28800, -28800, -25200, -28800],
}
"""The result of ``TimeZone.getOffset`` of JDK 17 at ``JAVA_MILLIS``, in seconds."""
JAVA_MILLIS = [
    *(-5_000_000_000_000, -2_208_988_800_001, -2_208_988_800_000, -2_177_500_000_000),
    *(-2_000_000_000_000, -1_500_000_000_000, 1_700_000_000_123, 1_720_000_000_123),
    4_102_444_800_000,
]


COLUMNS = "id", "a", "b", "c", "d"


def live_names(table: lake.Table) -> list[str]:
    snapshot = table.latest_snapshot()
    return [entry.file.file_name for entry in plan_files(table._handle, snapshot)]


def nanos(table: lake.Table, *columns: str) -> list[tuple[int, ...]]:
    """The rows as numbers: timestamps in nanoseconds, dates in days."""
    found = table.scan().to_arrow().sort_by("id").select(columns)
    lists = [
        column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64()).to_pylist()
        if pa.types.is_timestamp(column.type)
        else column.cast(pa.int32()).to_pylist()
        for column in found.columns
    ]
    return list(zip(*lists, strict=True))


def expected(*columns: str) -> list[tuple[int, ...]]:
    rows = expected_of("zones")["rows_nanoseconds"]
    return [tuple(row[COLUMNS.index(name)] for name in columns) for row in rows]


def values(table: lake.Table) -> list[object]:
    return table.scan().to_arrow().sort_by("id").column("at").to_pylist()


class Orc:
    """An ORC table of one file, which a JVM in another zone than UTC seems to have written."""

    def __init__(
        self, catalog: lake.Catalog, place: Path, kind: str, options: dict[str, str]
    ) -> None:
        self.place = place
        self.settings = {"file.format": "orc", "file.compression": "none", **options}
        self.columns = [("id", "INT"), ("at", kind)]
        self.catalog = catalog
        self.table = catalog.create_table("shop.t", self.columns, options=self.settings)

    def write(self, *rows: object, name: str = "shop.t") -> Path:
        """Write rows and return where their file is."""
        table = self.catalog.table(name)
        columns = {"id": list(range(len(rows))), "at": list(rows)}
        before = set(live_names(table)) if table.latest_snapshot() else set()
        table.write(pa.table(columns, schema=table.schema.arrow_schema()))
        [new] = set(live_names(table)) - before
        return Path(self.place, *name.replace(".", ".db/").split("/"), "bucket-0", new)

    def write_in(self, zone: bytes | None, rows: list[object], stored: list[object]) -> None:
        """Write a file that holds ``stored`` for ``rows``; its zone has three letters, or none."""
        self.catalog.create_table("shop.twin", self.columns, options=self.settings)
        content = self.write(*stored, name="shop.twin").read_bytes()
        assert content.count(GMT) == 1
        # A member that no reader knows stands for none.
        named = b"\x7a\x03GMT" if zone is None else b"\x1a\x03" + zone
        self.write(*rows).write_bytes(content.replace(GMT, named))


@pytest.fixture
def orc(catalog, tmp_path):
    """Makes an ``Orc`` with one column of a type."""

    def make(kind: str = "TIMESTAMP_LTZ(3)", **options: str) -> Orc:
        return Orc(catalog, tmp_path, kind, options)

    return make


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("zone", ZONES)
def test_java_tables_of_every_zone_have_the_instants_that_were_written(zone, kind, tmp_path):
    table = lake.open_table(unpack_foreign(f"zone_{zone}_{kind}", tmp_path))
    assert nanos(table, "id", "a", "b", "d") == expected("id", "a", "b", "d")
    # ORC's own readers do not agree about -1 ms.
    rows = 2 if kind.startswith("orc") else 3
    assert nanos(table, "c")[:rows] == expected("c")[:rows]


@pytest.mark.parametrize("zone", ZONES)
def test_conditions_on_instants_find_the_rows_of_every_zone(zone, tmp_path):
    table = lake.open_table(unpack_foreign(f"zone_{zone}_orc_true", tmp_path))
    first = datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)
    assert table.scan(where=lake.col("b") == first).to_arrow()["id"].to_pylist() == [1]
    assert table.scan(where="b >= '2024-07-03T09:46:40Z'").to_arrow()["id"].to_pylist() == [2]
    assert table.scan(where="b > '2024-07-03T09:46:41Z'").count() == 0


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        *((f"zone_{zone}_orc_true", ".parquet") for zone in ZONES[1:]),
        *((f"zone_{zone}_orc_false", ".orc") for zone in ZONES[1:]),
        *(("zone_utc_orc_true", ".orc"), ("zone_utc_orc_false", ".orc")),
    ],
)
def test_a_compaction_keeps_the_instants_for_every_jvm(name, ending, tmp_path):
    table = lake.open_table(unpack_foreign(name, tmp_path))
    before = nanos(table, *COLUMNS)
    table.write(table.scan().to_arrow())
    table.compact(strategy="full")
    assert nanos(table, *COLUMNS) == sorted(before * 2)
    assert [Path(each).suffix for each in live_names(table)] == [ending]


def test_a_deletion_keeps_the_instants_for_every_jvm(tmp_path):
    table = lake.open_table(unpack_foreign("zone_asia_shanghai_orc_true", tmp_path))
    table.delete("id = 1")
    assert nanos(table, "id", "b") == expected("id", "b")[1:]
    assert [Path(each).suffix for each in live_names(table)] == [".parquet"]


@pytest.mark.parametrize("left", [0, 1, 30, 200])
def test_a_damaged_file_is_named_by_what_rewrites_it(orc, left):
    made = orc()
    path = made.write(NOON)
    content = path.read_bytes()
    path.write_bytes(content[len(content) - left :] if left else b"")
    made.write(NOON)
    with pytest.raises(lake.CorruptTableError, match=path.name):
        made.table.compact(strategy="full")


def test_a_named_zone_is_turned_around_with_its_summer_time(orc):
    made = orc()
    winter = NOON.replace(month=1)
    made.write_in(b"MET", [NOON, winter, None], [NOON - 2 * HOUR, winter - HOUR, None])
    assert values(made.table) == [NOON, winter, None]


def test_the_three_letters_of_java_are_the_zones_it_means(orc):
    made = orc()
    made.write_in(b"CTT", [NOON], [NOON - 8 * HOUR])
    assert values(made.table) == [NOON]


def test_nested_instants_are_turned_around(orc):
    kind = "ROW<many ARRAY<TIMESTAMP_LTZ(3)>, by MAP<STRING, TIMESTAMP_LTZ(3)>, n INT>"
    made = orc(kind)

    def row(at: datetime) -> dict[str, object]:
        return {"many": [at, None], "by": [("x", at)], "n": 1}

    made.write_in(b"CTT", [row(NOON), None], [row(NOON - 8 * HOUR), None])
    assert values(made.table) == [row(NOON), None]


def test_the_instant_itself_is_stored_where_the_option_says_so(orc):
    made = orc(**{"orc.timestamp-ltz.legacy.type": "false"})
    made.write_in(b"CTT", [NOON], [NOON])
    assert values(made.table) == [NOON]


def test_files_without_a_zone_are_those_of_a_jvm_in_utc(orc):
    made = orc()
    made.write_in(None, [NOON], [NOON])
    assert values(made.table) == [NOON]


def test_files_without_a_zone_that_deny_their_manifest_are_refused(orc):
    made = orc()
    made.write_in(None, [NOON], [NOON - 8 * HOUR])
    with pytest.raises(lake.UnsupportedError) as refused:
        made.table.scan().to_arrow()
    assert "column 'at'" in str(refused.value)
    assert "+8 hours from UTC" in str(refused.value)
    assert "'lake.orc-writer-timezone'" in str(refused.value)


def test_an_option_names_the_zone_of_files_without_one(orc):
    made = orc()
    made.write_in(None, [NOON], [NOON - 8 * HOUR])
    zone = lake.set_option("lake.orc-writer-timezone", "Asia/Shanghai")
    made.catalog.alter_table("shop.t", zone)
    assert values(made.catalog.table("shop.t")) == [NOON]


def test_health_notes_files_that_do_not_name_their_zone(orc, catalog):
    [note] = orc().table.health().notes
    assert "read as if written in UTC" in note
    assert "'lake.orc-writer-timezone'" in note
    zone = lake.set_option("lake.orc-writer-timezone", "UTC")
    assert catalog.alter_table("shop.t", zone).health().notes == ()


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ([("at", "TIMESTAMP_LTZ(3)"), ("wall", "ARRAY<TIMESTAMP(3)>")], {"file.format": "orc"}),
        ([("at", "TIMESTAMP(3)")], {"file.format": "orc"}),
        ([("at", "TIMESTAMP_LTZ(3)")], {"file.format": "parquet"}),
        (
            [("at", "TIMESTAMP_LTZ(3)")],
            {"file.format": "orc", "orc.timestamp-ltz.legacy.type": "false"},
        ),
    ],
)
def test_health_notes_no_zone_where_none_is_needed(catalog, columns, options):
    assert catalog.create_table("shop.t", columns, options=options).health().notes == ()


def test_a_zone_the_machine_lacks_is_refused_by_name(orc):
    made = orc()
    made.write_in(b"XYZ", [NOON], [NOON])
    with pytest.raises(lake.UnsupportedError, match="'XYZ', which this machine does not know"):
        made.table.scan().to_arrow()


def test_no_option_takes_a_zone_that_there_is_not(catalog):
    options = {"file.format": "orc", "lake.orc-writer-timezone": "Mars/Base"}
    with pytest.raises(lake.InvalidRequestError, match=r"'lake.orc-writer-timezone' is"):
        catalog.create_table("shop.t", [("id", "INT")], options=options)


def test_new_files_are_parquet_where_jvms_outside_utc_write(catalog):
    options = {"file.format": "orc", "lake.orc-writer-timezone": "Asia/Shanghai"}
    table = catalog.create_table("shop.t", [("at", "TIMESTAMP_LTZ(3)")], options=options)
    table.write(pa.table({"at": [NOON]}, schema=table.schema.arrow_schema()))
    assert [Path(each).suffix for each in live_names(table)] == [".parquet"]
    other = catalog.create_table("shop.o", [("at", "TIMESTAMP(3)")], options=options)
    other.write(pa.table({"at": [NOON.replace(tzinfo=None)]}, schema=other.schema.arrow_schema()))
    assert [Path(each).suffix for each in live_names(other)] == [".orc"]


@pytest.mark.parametrize("zone", JAVA_OFFSETS)
def test_offsets_are_those_of_a_jvm(zone):
    found = zone_offsets(zone).at(np.array(JAVA_MILLIS, np.int64) * 1_000_000) // 1_000_000_000
    assert found.tolist() == JAVA_OFFSETS[zone]


@given(
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Tehran", "Asia/Kathmandu"]),
    seconds=st.lists(st.integers(0, 4_102_444_800), min_size=1, max_size=30),
)
def test_clocks_show_what_the_time_zone_database_says(zone, seconds):
    expected = [
        datetime.fromtimestamp(second, ZoneInfo(zone)).utcoffset() // timedelta(seconds=1)
        for second in seconds
    ]
    found = zone_offsets(zone).at(np.array(seconds, np.int64) * 1_000_000_000) // 1_000_000_000
    assert found.tolist() == expected


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_offsets_change_at_the_very_second(zone):
    offsets = zone_offsets(zone)
    for start in offsets.starts[-9:].tolist():
        around = np.array([start - 1, start], np.int64)
        expected = [
            datetime.fromtimestamp(second, ZoneInfo(zone)).utcoffset().total_seconds()
            for second in (start // 1_000_000_000 - 1, start // 1_000_000_000)
        ]
        assert (offsets.at(around) / 1_000_000_000).tolist() == expected
