"""Leases of Mixed tables as rows: one holder takes a number, whichever database has the row."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from lakeformat.catalog.iceberg.sql_leases import SqlLeases
from lakeformat.storage.sql import SqlDatabase, parse_database_uri
from lakeformat.tables.lease import StoredLease

RACERS = 6


@pytest.fixture(params=["sqlite", "postgresql"])
def uri(request, tmp_path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    return request.getfixturevalue("postgres").new_database()


@pytest.fixture
def database(uri) -> SqlDatabase:
    database = SqlDatabase(parse_database_uri(uri))
    database.create()
    yield database
    database.close()


def test_a_row_is_taken_renewed_and_lost(database):
    mine = SqlLeases(database, "lake", "uuid-1")
    assert mine.newest() is None
    assert mine.take(StoredLease(1, "a", 100))
    assert mine.newest() == StoredLease(1, "a", 100)
    assert mine.renew(StoredLease(1, "a", 2**70))
    assert mine.newest() == StoredLease(1, "a", 2**63 - 1)
    assert not mine.take(StoredLease(1, "b", 100))
    assert not mine.take(StoredLease(3, "b", 100))
    assert mine.take(StoredLease(2, "b", 100))
    assert not mine.renew(StoredLease(1, "a", 200))
    assert mine.newest() == StoredLease(2, "b", 100)
    for other in (SqlLeases(database, "lake", "uuid-2"), SqlLeases(database, "other", "uuid-1")):
        assert other.newest() is None


def test_one_of_many_holders_takes_each_number(uri, database):
    databases = [SqlDatabase(parse_database_uri(uri)) for _ in range(RACERS)]
    gate = Barrier(RACERS)

    def race(racer: int) -> list[bool]:
        leases, won = SqlLeases(databases[racer], "lake", "uuid"), []
        for number in range(1, 6):
            gate.wait()
            won.append(leases.take(StoredLease(number, str(racer), 100)))
        return won

    SqlLeases(database, "lake", "another").take(StoredLease(1, "x", 0))
    with ThreadPoolExecutor(RACERS) as threads:
        won = [*threads.map(race, range(RACERS))]
    assert [sum(each) for each in zip(*won, strict=True)] == [1] * 5
    for each in databases:
        each.close()
