"""Policies: inherited step by step, checked by name, and always read the same way."""

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


def test_a_step_can_be_left_out_and_taken_in_again():
    assert list(one({"compact": False, "analyze": True}).steps) == ["analyze"]
    again = one({"compact": True}, compact=False)
    assert again.steps == {"compact": {}}


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


def test_the_order_of_the_file_changes_nothing():
    forwards = policy({"a": {}, "b": {}})
    backwards = policy({"b": {}, "a": {}})
    assert forwards == backwards


@pytest.mark.parametrize(
    ("of_table", "words"),
    [
        ({"compakt": {}}, "shop.orders says 'compakt': did you mean 'compact'"),
        ({"compact": {"min_file": 3}}, "compact says 'min_file': did you mean 'min_files'"),
        ({"compact": 5}, "shop.orders: compact is 5, not names with values"),
        ({"compact": False}, "shop.orders has no step"),
        (5, "shop.orders is 5"),
    ],
)
def test_what_makes_no_sense_is_named(of_table, words):
    with pytest.raises(PolicyError, match=words.replace(".", r"\.")):
        one(of_table)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "names no database"),
        ({"databases": {"shop": {}}}, "'shop' of the policy names no table"),
        ({"databases": {"shop": {"tables": {"a.b": {}}}}}, "a.b"),
        ({"tables": {}}, "the policy says 'tables'"),
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
