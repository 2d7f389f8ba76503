"""The lock in a SQL database: one holder at a time, even if a holder dies or sleeps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

import lakeformat as lake
from lakeformat.storage.sql import LockSettings, SqlDatabase, SqlLock, parse_database_uri
from lakeformat.storage.sql.lock_rows import OUR_MARK, LockRow, has_expired
from lakeformat.storage.sql.tables import LOCKS_NAME, create_missing_tables

KEY = "shop.orders"
SETTINGS = LockSettings()
LEASE = 480
JAVA_INSERT = (
    f"INSERT INTO {LOCKS_NAME} (lock_id, expire_time_seconds) VALUES ('jdbc.{KEY}', {{lease}})"
)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["sqlite", "postgresql"])
def uri(request, tmp_path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/locks.db"
    return request.getfixturevalue("postgres").new_database()


@pytest.fixture
def database(uri) -> SqlDatabase:
    database = SqlDatabase(parse_database_uri(uri))
    create_missing_tables(database, lock_key_length=255)
    yield database
    database.close()


@pytest.fixture
def sqlite(tmp_path) -> SqlDatabase:
    database = SqlDatabase(parse_database_uri(f"sqlite:///{tmp_path}/locks.db"))
    create_missing_tables(database, lock_key_length=255)
    yield database
    database.close()


class World:
    """A clock that only sleeping moves."""

    def __init__(self, on_sleep=lambda: None) -> None:
        self.now = 1000.0
        self.sleeps: list[float] = []
        self.on_sleep = on_sleep

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
        self.on_sleep()

    def lock(self, database: SqlDatabase, settings: LockSettings = SETTINGS) -> SqlLock:
        environment = replace(lake.Environment(), sleep_seconds=self.sleep)
        return SqlLock(database, "jdbc", settings, environment, clock=lambda: self.now)


def rows(database: SqlDatabase) -> list[tuple]:
    with database.reading("look") as connection:
        found = connection.execute(text(f"SELECT lock_id, expire_time_seconds FROM {LOCKS_NAME}"))
        return [tuple(row) for row in found]


def execute(database: SqlDatabase, statement: str) -> int:
    with database.writing("prepare a test") as connection:
        return connection.exec_driver_sql(statement).rowcount


def java_takes_the_lock(database: SqlDatabase, seconds_ago: int = 0, lease: int = LEASE) -> None:
    """A row as Java's catalog inserts it, a while ago."""
    execute(database, JAVA_INSERT.format(lease=lease))
    then = (
        f"strftime('%Y-%m-%d %H:%M:%S', 'now', '-{seconds_ago} seconds')"
        if database.is_sqlite
        else f"acquired_at - interval '{seconds_ago} seconds'"
    )
    execute(database, f"UPDATE {LOCKS_NAME} SET acquired_at = {then}")


def java_deletes_what_expired(database: SqlDatabase) -> int:
    age = (
        "strftime('%s','now') - strftime('%s', acquired_at)"
        if database.is_sqlite
        else "EXTRACT(EPOCH FROM AGE(NOW(), acquired_at))"
    )
    return execute(database, f"DELETE FROM {LOCKS_NAME} WHERE {age} > expire_time_seconds")


def test_a_held_lock_is_a_row_as_java_reads_it_and_a_released_one_is_none(database):
    with World().lock(database).hold(KEY) as held:
        held.require_time()
        assert rows(database) == [("jdbc.shop.orders", LEASE)]
        assert java_deletes_what_expired(database) == 0
    assert rows(database) == []


def test_who_waits_in_vain_sleeps_longer_and_longer_and_is_told_how_old_the_row_is(database):
    world = World()
    told = rf"not free within 20 s: its row was renewed at 20.* expires after {LEASE} s"
    with World().lock(database).hold(KEY), pytest.raises(lake.LockUnavailableError, match=told):
        world.lock(database, replace(SETTINGS, acquire_timeout_seconds=20)).row(KEY).acquire()
    assert world.sleeps[:7] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4]
    assert max(world.sleeps) <= 8
    assert sum(world.sleeps) == pytest.approx(20)


def test_who_waits_gets_the_lock_when_it_is_released(database):
    holder = World().lock(database).row(KEY)
    holder.acquire()
    waiting = World(on_sleep=holder.release)
    with waiting.lock(database).hold(KEY) as held:
        held.require_time()
    assert len(waiting.sleeps) == 1


def test_other_keys_and_other_catalogs_do_not_wait(database):
    with (
        World().lock(database).hold(KEY),
        World().lock(database).hold("shop.items"),
        SqlLock(database, "other", SETTINGS).hold(KEY),
    ):
        assert len(rows(database)) == 3


def test_a_row_of_ours_expires_by_the_clock_of_the_database(database):
    dead = World().lock(database).row(KEY)
    dead.acquire()
    dead._released.set()
    back = (
        f"strftime('%Y-%m-%d %H:%M:%S', acquired_at, '-{LEASE + 2} seconds') || '.000{OUR_MARK}'"
        if database.is_sqlite
        else f"acquired_at - interval '{LEASE + 2} seconds'"
    )
    execute(database, f"UPDATE {LOCKS_NAME} SET acquired_at = {back}")
    world = World()
    with world.lock(database).hold(KEY):
        assert world.sleeps == []


def test_a_holder_who_was_taken_over_hears_of_it_and_leaves_the_successor_alone(database):
    holder = World().lock(database).row(KEY)
    holder.acquire()
    execute(database, f"DELETE FROM {LOCKS_NAME}")
    java_takes_the_lock(database)
    with pytest.raises(lake.LockUnavailableError, match=r"was lost: .* nothing was published"):
        holder.require_time()
    with pytest.raises(lake.LockUnavailableError, match="was lost"):
        holder.require_time()
    holder.release()
    assert rows(database) == [("jdbc.shop.orders", LEASE)]


def test_releasing_without_having_noticed_leaves_the_successor_alone_too(database):
    holder = World().lock(database).row(KEY)
    holder.acquire()
    execute(database, f"DELETE FROM {LOCKS_NAME}")
    successor = World().lock(database).row(KEY)
    successor.acquire()
    holder.release()
    successor.require_time()
    successor.release()
    assert rows(database) == []


def test_an_answer_that_took_half_the_lease_is_not_trusted(database):
    world = World()
    holder = world.lock(database).row(KEY)
    holder.acquire()
    renew = holder._rows.renew

    def slow(*arguments):
        world.now += LEASE / 2
        return renew(*arguments)

    holder._rows.renew = slow
    with pytest.raises(lake.LockUnavailableError, match="took too long to be trusted"):
        holder.require_time()
    holder.release()


def test_a_renewal_without_an_answer_may_have_been_made_or_not(database):
    holder = World().lock(database).row(KEY)
    holder.acquire()
    renew = holder._rows.renew

    def undone(*arguments):
        renew(*arguments)
        raise lake.UnavailableError("the connection broke")

    holder._rows.renew = undone
    with pytest.raises(lake.LockUnavailableError, match="the connection broke"):
        holder.require_time()
    holder._rows.renew = renew
    holder.require_time()
    holder.release()
    assert rows(database) == []


def test_a_lease_that_is_no_number_is_named_where_a_column_takes_any_value(sqlite):
    database = sqlite
    execute(database, f"INSERT INTO {LOCKS_NAME} VALUES ('jdbc.{KEY}', datetime('now'), 'soon')")
    with pytest.raises(lake.InvalidRequestError, match="expire_time_seconds='soon'"):
        World().lock(database).row(KEY).acquire()


def test_sqlite_waits_for_another_program_no_longer_than_the_lock_is_waited_for(sqlite):
    database = sqlite
    with (
        database.connect_apart() as connection,
        database.writing_on(connection, "try", patience_seconds=0.25),
    ):
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == 250
    lock = World().lock(database, replace(SETTINGS, acquire_timeout_seconds=2)).row(KEY)
    asked = []
    writing_on = database.writing_on

    def noted(connection, doing, patience_seconds=None):
        asked.append(patience_seconds)
        return writing_on(connection, doing, patience_seconds)

    database.writing_on = noted
    lock.acquire()
    lock.release()
    assert asked[0] == 2


def test_a_forked_process_leaves_the_connections_of_its_parent_alone(database):
    with database.reading("look"):
        pass
    assert database._engine.pool.checkedin() == 1
    child = os.fork()
    if child == 0:
        os._exit(database._engine.pool.checkedin())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert database._engine.pool.checkedin() == 1


def test_a_lock_that_is_kept_back_is_nobodys_until_it_expires(database):
    """Its holder has lost the answer to a write, which may arrive late."""
    with World().lock(database).hold(KEY) as held:
        held.keep()
        with pytest.raises(lake.LockUnavailableError, match=rf"it expires, in at most {LEASE}"):
            held.require_time()
    assert rows(database) == [("jdbc.shop.orders", LEASE)]
    assert java_deletes_what_expired(database) == 0
    world = World()
    with world.lock(database).hold(KEY) as successor:
        successor.require_time()
    assert sum(world.sleeps) == pytest.approx(LEASE)


def test_a_lock_that_is_kept_back_is_not_renewed(database):
    lock = World().lock(database, replace(SETTINGS, acquire_timeout_seconds=2)).row(KEY)
    before = {*threading.enumerate()}
    lock.acquire()
    [renewing] = {*threading.enumerate()} - before
    lock.keep()
    renewing.join(timeout=30)
    assert not renewing.is_alive()
    lock.release()
    assert rows(database) == [("jdbc.shop.orders", 2)]


def test_a_write_that_may_outlive_the_lock_is_refused_with_the_option(database):
    with World().lock(database, replace(SETTINGS, acquire_timeout_seconds=60)).hold(KEY) as held:
        held.require_time(30)
        with pytest.raises(lake.InvalidRequestError, match="may take 31 s"):
            held.require_time(31)
        with pytest.raises(
            lake.InvalidRequestError,
            match=r"guaranteed only for 30 s, .* take 105 s.*lock-acquire-timeout to 210 s",
        ):
            held.require_time(105)


def test_a_lock_that_nobody_holds_protects_nothing(database):
    with pytest.raises(lake.InvalidRequestError, match="is not held"):
        World().lock(database).row(KEY).require_time()


def test_a_fresh_row_of_java_is_waited_for_and_one_watched_for_its_life_is_dead(database):
    java_takes_the_lock(database)
    world = World()
    with world.lock(database).hold(KEY) as held:
        held.require_time()
    assert sum(world.sleeps) == pytest.approx(LEASE)


def test_an_old_row_of_java_is_taken_over_at_once_when_it_is_old_in_every_time_zone(database):
    java_takes_the_lock(database, seconds_ago=12 * 3600 + LEASE + 5)
    world = World()
    with world.lock(database).hold(KEY):
        assert world.sleeps == []


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_stricter_isolation_by_default_does_not_stop_who_competes(postgres, level):
    name = postgres.make_database()
    postgres.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'")
    assert postgres.execute("SHOW transaction_isolation", name) == [(level,)]
    database = SqlDatabase(parse_database_uri(postgres.url(name)))
    create_missing_tables(database, lock_key_length=255)
    java_takes_the_lock(database)
    update = text(f"UPDATE {LOCKS_NAME} SET expire_time_seconds = expire_time_seconds + 1")
    for connection in (database.writing("try"), database.connect_apart()):
        with connection as mine:
            mine.execute(text(f"SELECT * FROM {LOCKS_NAME}"))
            execute(database, str(update))
            assert mine.execute(update).rowcount == 1
            mine.commit()
    assert rows(database) == [(f"jdbc.{KEY}", LEASE + 4)]
    database.close()


@pytest.mark.parametrize("zone", ["Etc/GMT+12", "Etc/GMT-14"])
def test_hosts_in_other_time_zones_agree_on_how_old_a_lock_is(postgres, zone):
    uri = postgres.new_database()
    here, there = (
        SqlDatabase(parse_database_uri(f"{uri}&options=-ctimezone%3D{name.replace('+', '%2B')}"))
        for name in ("UTC", zone)
    )
    create_missing_tables(here, lock_key_length=255)
    for first, second in ((here, there), (there, here)):
        with World().lock(first).hold(KEY) as held:
            short = replace(SETTINGS, acquire_timeout_seconds=5)
            with pytest.raises(lake.LockUnavailableError, match="not free within 5 s"):
                World().lock(second, short).row(KEY).acquire()
            held.require_time()
        execute(second, f"DELETE FROM {LOCKS_NAME}")


@pytest.mark.parametrize("zone", ["Etc/GMT+12", "Etc/GMT-14"])
def test_a_living_lock_of_a_java_in_any_time_zone_is_respected(postgres, zone):
    database = SqlDatabase(parse_database_uri(postgres.new_database()))
    create_missing_tables(database, lock_key_length=255)
    with database.writing("be Java") as connection:
        connection.exec_driver_sql(f"SET LOCAL timezone = '{zone}'")
        connection.exec_driver_sql(JAVA_INSERT.format(lease=LEASE))
    with pytest.raises(lake.LockUnavailableError, match="not free within 300 s"):
        World().lock(database, replace(SETTINGS, acquire_timeout_seconds=300)).row(KEY).acquire()


@pytest.mark.parametrize(
    ("age", "watched", "zone_known", "expired"),
    [
        (480, 0, True, False),
        (481, 0, True, True),
        (481, 0, False, False),
        (12 * 3600 + 481, 0, False, True),
        (-7200, 479, False, False),
        (-7200, 480, False, True),
        (None, 479, True, False),
        (None, 480, True, True),
    ],
)
def test_when_a_row_is_expired(age, watched, zone_known, expired):
    row = LockRow("2026-01-01 00:00:00", 480, age, zone_known)
    assert has_expired(row, watched) is expired


def test_a_missing_table_is_an_error_and_no_contention(database):
    execute(database, f"DROP TABLE {LOCKS_NAME}")
    world = World()
    with pytest.raises(lake.LakeError, match=f"acquire the lock jdbc.{KEY}.*{LOCKS_NAME}"):
        world.lock(database).row(KEY).acquire()
    assert world.sleeps == []


def test_a_key_that_does_not_fit_is_refused(database):
    lock = World().lock(database, replace(SETTINGS, key_length=10))
    with pytest.raises(lake.InvalidRequestError, match="lock-key-max-length=10"):
        lock.row(KEY)


def cut_connections(postgres) -> None:
    postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND datname LIKE 'test_%'"
    )


def test_a_connection_lost_while_waiting_is_an_error_at_once(postgres):
    database = SqlDatabase(parse_database_uri(postgres.new_database()))
    create_missing_tables(database, lock_key_length=255)
    java_takes_the_lock(database)
    world = World(on_sleep=lambda: cut_connections(postgres))
    with pytest.raises(lake.LockUnavailableError, match="cannot acquire the lock"):
        world.lock(database).row(KEY).acquire()
    assert len(world.sleeps) == 1


def test_a_connection_lost_while_holding_stops_the_publication_and_the_row_goes_later(postgres):
    database = SqlDatabase(parse_database_uri(postgres.new_database()))
    create_missing_tables(database, lock_key_length=255)
    holder = World().lock(database).row(KEY)
    holder.acquire()
    cut_connections(postgres)
    with pytest.raises(lake.LockUnavailableError, match="cannot renew the lock"):
        holder.require_time()
    holder.release()
    assert rows(database) == []


PROCESS = """
import json, sys, time
from lakeformat.storage.sql import LockSettings, SqlDatabase, SqlLock, parse_database_uri
from tests.forked import forked

uri, lease, counter, times = json.loads(sys.argv[1])
if times:
    forked(8)
database = SqlDatabase(parse_database_uri(uri))
settings = LockSettings(acquire_timeout_seconds=lease, max_sleep_seconds=0.05)
lock = SqlLock(database, "jdbc", settings)
if times:
    for _ in range(times):
        with lock.hold("shop.orders") as held:
            number = int(open(counter).read())
            held.require_time()
            open(counter, "w").write(str(number + 1))
else:
    row = lock.row("shop.orders")
    row.acquire()
    print("held", flush=True)
    sys.stdin.readline()
    try:
        row.require_time()
        print("published", flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
    row.release()
    print("released", flush=True)
"""


def start(uri: str, lease: float, counter: str = "", times: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, json.dumps([uri, lease, counter, times])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.sampled(1)
def test_eight_processes_never_hold_it_at_once(database, uri, tmp_path):
    counter = tmp_path / "counter"
    counter.write_text("0")
    racers = start(uri, 300, str(counter), 3)
    racers.communicate()
    assert racers.returncode == 0
    assert counter.read_text() == "24"
    assert rows(database) == []


def test_the_lock_of_a_dead_process_is_free_after_its_lease(database, uri):
    holder = start(uri, 2)
    assert holder.stdout.readline() == "held\n"
    holder.kill()
    holder.communicate()
    assert len(rows(database)) == 1
    with SqlLock(database, "jdbc", replace(SETTINGS, max_sleep_seconds=0.1)).hold(KEY) as held:
        held.require_time()


def test_a_process_that_slept_too_long_does_not_publish_and_frees_nothing(database, uri):
    holder = start(uri, 2)
    assert holder.stdout.readline() == "held\n"
    os.kill(holder.pid, signal.SIGSTOP)
    successor = SqlLock(database, "jdbc", replace(SETTINGS, max_sleep_seconds=0.1)).row(KEY)
    successor.acquire()
    os.kill(holder.pid, signal.SIGCONT)
    said, _ = holder.communicate("go on\n")
    assert said.split() == ["LockUnavailableError", "released"]
    successor.require_time()
    successor.release()


def test_a_living_holder_renews_and_keeps_it_longer_than_its_lease(database, uri):
    holder = start(uri, 2)
    assert holder.stdout.readline() == "held\n"
    impatient = replace(SETTINGS, acquire_timeout_seconds=4, max_sleep_seconds=0.1)
    with pytest.raises(lake.LockUnavailableError, match="not free within 4 s"):
        SqlLock(database, "jdbc", impatient).row(KEY).acquire()
    said, _ = holder.communicate("go on\n")
    assert said.split() == ["published", "released"]
