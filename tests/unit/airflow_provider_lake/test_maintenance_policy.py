"""Policies: inherited step by step, checked by name, and always read the same way."""

from datetime import UTC, date, datetime

import pytest

from airflow_provider_lake.maintenance.policy import Gate, PolicyError, read_policy

DEFAULTS = {"schedule": "@daily", "compact": {"strategy": "minor", "min_files": 5}}


def policy(tables, *, defaults=DEFAULTS, **of_database):
    return read_policy(
        {"defaults": defaults, "databases": {"shop": {**of_database, "tables": tables}}}
    )


def one(of_table, **more):
    [table] = policy({"orders": of_table}, **more).tables
    return table


def test_a_table_inherits_argument_by_argument():
    table = one(
        {"compact": {"strategy": "full"}, "expire_snapshots": {"retain_max": 5}},
        expire_snapshots={"older_than": "7 d"},
        pool="lake",
    )

    assert table.steps == {
        "compact": {"strategy": "full"},
        "expire_snapshots": {"older_than": "7 d", "retain_max": 5},
    }
    assert (table.gate, table.pool, table.schedule) == (Gate(min_files=5), "lake", "@daily")


def test_a_step_can_be_left_out():
    assert list(one({"compact": False, "analyze": True}).steps) == ["analyze"]


@pytest.mark.parametrize(
    ("of_table", "more"), [(True, {}), (None, {}), ({"where": "day > 1"}, {"where": "day > 1"})]
)
def test_a_step_that_is_taken_in_again_inherits_its_arguments(of_table, more):
    again = one({"compact": of_table}, compact=False)
    assert again.steps == {"compact": {"strategy": "minor"} | more}
    assert again.gate == Gate(min_files=5)


def test_an_expiry_that_is_taken_in_again_keeps_its_age():
    defaults = DEFAULTS | {"expire_snapshots": {"older_than": "7 d", "retain_min": 10}}
    of_table = {"expire_snapshots": True}
    again = one(of_table, defaults=defaults, expire_snapshots=False)
    assert again.steps["expire_snapshots"] == {"older_than": "7 d", "retain_min": 10}


def test_steps_come_in_the_order_they_run_whatever_the_file_says():
    table = one({"remove_orphans": True, "expire_snapshots": True, "expire_partitions": True})
    assert list(table.steps) == [
        "expire_partitions",
        "compact",
        "expire_snapshots",
        "remove_orphans",
    ]


def test_tables_of_one_schedule_share_a_dag():
    read = policy({"a": None, "b": {"schedule": "@hourly"}, "c": {}})

    found = {name: [table.table for table in tables] for name, tables in read.by_dag().items()}

    assert found == {"lake_shop": ["shop.a", "shop.c"], "lake_shop__2": ["shop.b"]}


def test_a_database_with_the_id_of_another_schedule_loses_no_table():
    hourly = {"schedule": "@hourly"}
    databases = {"!shop__2": {"tables": {"a": {}}}, "shop": {"tables": {"a": {}, "b": hourly}}}

    found = read_policy({"defaults": DEFAULTS, "databases": databases}).by_dag()

    assert sorted(table.table for tables in found.values() for table in tables) == [
        "!shop__2.a",
        "shop.a",
        "shop.b",
    ]


def test_the_order_of_the_file_changes_nothing():
    forwards = policy({"a": {}, "b": {}})
    backwards = policy({"b": {}, "a": {}})
    assert forwards == backwards


@pytest.mark.parametrize(
    ("of_table", "words"),
    [
        ({"compakt": {}}, "shop.orders has an unknown name 'compakt': did you mean 'compact'"),
        (
            {"compact": {"min_file": 3}},
            "compact has an unknown name 'min_file': did you mean 'min_files'",
        ),
        ({"compact": 5}, "shop.orders: compact must be a mapping of names to values, got 5"),
        ({"compact": False}, "shop.orders has no step"),
        (5, "shop.orders must be a mapping of names to values, got 5"),
    ],
)
def test_what_makes_no_sense_is_named(of_table, words):
    with pytest.raises(PolicyError, match=words.replace(".", r"\.")):
        one(of_table)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "has no database"),
        ({"databases": {"shop": {}}}, "the policy names no tables for database 'shop'"),
        ({"databases": {"shop": {"tables": {"a.b": {}}}}}, "a.b"),
        ({"tables": {}}, "the policy has an unknown name 'tables'"),
        ({"databases": {"shop": {"tables": {"a": {"compact": True}}}}}, "shop.a has no schedule"),
    ],
)
def test_a_policy_without_tables_or_schedule_is_refused(values, words):
    with pytest.raises(PolicyError, match=words):
        read_policy(values)


def test_a_file_that_is_no_yaml_is_named(tmp_path):
    (tmp_path / "lake.yaml").write_text("a: [")
    with pytest.raises(PolicyError, match=r"lake\.yaml cannot be read as YAML"):
        read_policy(tmp_path / "lake.yaml")


@pytest.mark.parametrize(
    ("of_table", "words"),
    [
        (
            {"compact": {"min_files": "5"}},
            "compact: min_files must be a whole number from 1 on, got '5'",
        ),
        (
            {"compact": {"min_files": 0}},
            "compact: min_files must be a whole number from 1 on, got 0",
        ),
        (
            {"compact": {"max_bytes": -1}},
            "compact: max_bytes must be a whole number from 1 on, got -1",
        ),
        (
            {"compact": {"max_bytes": "10 X"}},
            "compact: max_bytes must be a number of bytes, or a size such as '10 gb'",
        ),
        ({"pool_slots": "x"}, "pool_slots must be a whole number from 1 on, got 'x'"),
        ({"pool_slots": True}, "pool_slots must be a whole number from 1 on, got True"),
        ({"retries": -1}, "retries must be a whole number from 0 on, got -1"),
        ({"retries": "x"}, "retries must be a whole number from 0 on, got 'x'"),
        ({"pool": 5}, "pool must be a non-empty string, got 5"),
        ({"lake_conn_id": ""}, "lake_conn_id must be a non-empty string, got ''"),
        ({"schedule": 5}, "schedule must be a non-empty string, got 5"),
    ],
)
def test_a_value_that_cannot_be_right_is_refused_with_its_table_and_name(of_table, words):
    with pytest.raises(PolicyError) as refused:
        one(of_table)
    assert str(refused.value).startswith(f"shop.orders: {words}")


@pytest.mark.parametrize(
    "thresholds", [{"min_files": "x"}, {"min_files": 0}, {"max_bytes": -1}, {"max_bytes": 1.5}]
)
def test_thresholds_that_cannot_be_right_are_refused_in_code(thresholds):
    with pytest.raises(PolicyError, match="must be a whole number from 1 on"):
        Gate(**thresholds)


def test_a_quota_may_have_a_unit():
    assert one({"compact": {"max_bytes": "10 GB"}}).gate.max_bytes == 10 * 2**30
    assert one({"compact": {"max_bytes": 7}}).gate.max_bytes == 7


@pytest.mark.parametrize(
    ("written", "taken"),
    [
        (date(2024, 1, 31), "2024-01-31"),
        (datetime(2024, 1, 31, 10, tzinfo=UTC), "2024-01-31T10:00:00+00:00"),
    ],
)
def test_a_time_without_quotes_is_the_same_time(written, taken):
    """YAML reads it as one."""
    table = one({"expire_snapshots": {"older_than": written}})
    assert table.steps["expire_snapshots"] == {"older_than": taken}
