"""The rules for tables with a merge engine: each error names the column and what to do."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.merge.merge_setup import merge_engine, merge_order
from lakeformat.paimon.schema_changes.option_rules import check_setting
from lakeformat.storage import open_storage

COLUMNS = [
    ("id", "BIGINT"),
    ("dt", "STRING"),
    ("a", "INT"),
    ("b", "STRING"),
    ("g", "BIGINT"),
    ("h", "TIMESTAMP(3)"),
    ("kind", "STRING"),
]
PARTIAL = {"merge-engine": "partial-update"}
GROUP = {**PARTIAL, "fields.g.sequence-group": "a"}
FIRST = {"merge-engine": "first-row"}
AGGREGATE = {"merge-engine": "aggregation"}


def create(catalog, options, primary_key=("id",), partition_by=()) -> lake.Table:
    return catalog.create_table(
        "shop.orders",
        COLUMNS,
        primary_key=list(primary_key),
        partition_by=list(partition_by),
        options={"bucket": "1", **options} if primary_key else options,
    )


ALLOWED = [
    {"sequence.field": "g, h"},
    {"sequence.field": "b", "sequence.field.sort-order": "descending"},
    {**PARTIAL, "sequence.field": "g"},
    {**AGGREGATE, "sequence.field": "g", "fields.a.aggregate-function": "sum"},
    {"rowkind.field": "kind", "ignore-update-before": "true"},
    {"deduplicate.ignore-delete": "true"},
    {**FIRST, "first-row.ignore-delete": "true"},
    {**PARTIAL, "partial-update.ignore-delete": "true"},
    {**PARTIAL, "partial-update.remove-record-on-delete": "true"},
    {**PARTIAL, "fields.a.aggregate-function": "last_non_null_value"},
    {**PARTIAL, "fields.default-aggregate-function": "last_non_null_value"},
    {**GROUP, "fields.a.aggregate-function": "sum"},
    {**GROUP, "fields.h.sequence-group": "b", "fields.b.aggregate-function": "listagg"},
    {**PARTIAL, "fields.g,h.sequence-group": "a,b"},
    {**PARTIAL, "fields.g.sequence-group": "g,a"},
    {**GROUP, "partial-update.remove-record-on-sequence-group": "g"},
    {**GROUP, "ignore-delete": "true"},
    {"changelog-producer": "input"},
    {"partial-update.remove-record-on-delete": "false"},
    {**AGGREGATE, "aggregation.remove-record-on-delete": "true"},
]


@pytest.mark.parametrize("options", ALLOWED, ids=str)
def test_what_goes_together_can_be_made(catalog, options):
    assert create(catalog, options).schema.options == {"bucket": "1", **options}


REFUSED = [
    # The order of rows
    (
        {"sequence.field": "nix"},
        "'sequence.field' names 'nix', which is not a column; the columns are id,",
    ),
    ({"sequence.field": "g,g"}, "'sequence.field' names 'g' twice; name it once"),
    (
        {**AGGREGATE, "sequence.field": "g", "fields.g.aggregate-function": "sum"},
        "'fields.g.aggregate-function' aggregates 'g', a column of 'sequence.field'",
    ),
    ({**FIRST, "sequence.field": "g"}, "'sequence.field' is 'g', but merge engine 'first-row'"),
    ({"sequence.field.sort-order": "sideways"}, "'sequence.field.sort-order' is 'sideways'"),
    ({"sequence.snapshot-ordering": "true"}, "'sequence.snapshot-ordering' orders rows"),
    ({"rowkind.field": "nix"}, "'rowkind.field' names 'nix', which is not a column; name a STRING"),
    ({"rowkind.field": "a"}, "'rowkind.field' names 'a', which is INT; name a STRING column"),
    # First row
    ({**FIRST, "changelog-producer": "input"}, "'changelog-producer' is 'input', .* to 'none'"),
    (
        {**FIRST, "deletion-vectors.enabled": "true"},
        "'deletion-vectors.enabled' is 'true', but with merge engine 'first-row'",
    ),
    # Sequence groups
    (
        {**PARTIAL, "fields.nix.sequence-group": "a"},
        "'fields.nix.sequence-group' names 'nix', which is not a column",
    ),
    (
        {**PARTIAL, "fields.g,nix.sequence-group": "a"},
        "'fields.g,nix.sequence-group' names 'nix', which is not a column",
    ),
    ({**PARTIAL, "fields.g.sequence-group": "nix"}, "names 'nix', which is not a column"),
    ({**PARTIAL, "fields.g.sequence-group": "a, h"}, "names ' h', which is not a column"),
    ({**PARTIAL, "fields.id.sequence-group": "a"}, "names 'id', a column of the primary key"),
    ({**PARTIAL, "fields.g.sequence-group": "id"}, "names 'id', a column of the primary key"),
    (
        {**PARTIAL, "fields.b.sequence-group": "a"},
        "names 'b', whose type STRING cannot be the sequence of a group; take a column of numbers",
    ),
    (
        {**GROUP, "fields.h.sequence-group": "a"},
        "names the column 'a' and so does option 'fields.g.sequence-group'",
    ),
    (
        {**GROUP, "fields.g,h.sequence-group": "b"},
        "names the column 'g' and so does option 'fields.g,h.sequence-group': a column can be",
    ),
    ({**PARTIAL, "fields.g.sequence-group": "a,a"}, "names the column 'a' twice"),
    (
        {"fields.g.sequence-group": "a"},
        "'fields.g.sequence-group' is for merge engine 'partial-update', but the table has 'dedup",
    ),
    # Functions
    (
        {**PARTIAL, "fields.a.aggregate-function": "sum"},
        "'fields.a.aggregate-function' aggregates 'a' with 'sum', which needs a sequence group",
    ),
    (
        {**GROUP, "fields.default-aggregate-function": "max"},
        "'fields.default-aggregate-function' aggregates 'dt' with 'max', which needs a sequence",
    ),
    (
        {**GROUP, "fields.a.aggregate-function": "listagg"},
        "'a' is INT, but its aggregate function 'listagg' takes STRING",
    ),
    ({**GROUP, "fields.a.aggregate-function": "nix"}, "function 'nix', which does not exist"),
    ({**AGGREGATE, "fields.a.aggregate-function": "listagg"}, "'a' is INT, but its aggregate"),
    ({**AGGREGATE, "fields.nix.aggregate-function": "sum"}, "names 'nix', which is not a column"),
    # Deletes
    (
        {
            **PARTIAL,
            "partial-update.remove-record-on-delete": "true",
            "ignore-delete": "true",
        },
        "'partial-update.remove-record-on-delete' lets deletes remove rows, but option 'ignore-",
    ),
    (
        {
            **GROUP,
            "partial-update.remove-record-on-sequence-group": "g",
            "partial-update.ignore-delete": "true",
        },
        "'partial-update.remove-record-on-sequence-group' lets deletes remove rows",
    ),
    (
        {**GROUP, "partial-update.remove-record-on-delete": "true"},
        "remove the whole row, but option 'fields.g.sequence-group' lets deletes set columns",
    ),
    (
        {**GROUP, "partial-update.remove-record-on-sequence-group": "h"},
        "names 'h', but the sequence columns of the groups are g",
    ),
    (
        {**PARTIAL, "partial-update.remove-record-on-sequence-group": "g"},
        "names 'g', but the table has no sequence group; add 'fields\\.g\\.sequence-group'",
    ),
    (
        {
            **AGGREGATE,
            "aggregation.remove-record-on-delete": "true",
            "fields.a.ignore-retract": "true",
        },
        "'aggregation.remove-record-on-delete' and 'fields.a.ignore-retract' contradict",
    ),
    # Options of another engine
    (
        {**AGGREGATE, "partial-update.remove-record-on-delete": "true"},
        "'partial-update.remove-record-on-delete' is for merge engine 'partial-update', but the",
    ),
    (
        {**PARTIAL, "aggregation.remove-record-on-delete": "true"},
        "'aggregation.remove-record-on-delete' is for merge engine 'aggregation', .* leave it out",
    ),
    (
        {"partial-update.remove-record-on-sequence-group": "g"},
        "'partial-update.remove-record-on-sequence-group' is for merge engine 'partial-update'",
    ),
]


@pytest.mark.parametrize(("options", "reason"), REFUSED, ids=lambda part: str(part)[:70])
def test_what_does_not_go_together_is_refused_by_option_and_column(catalog, options, reason):
    with pytest.raises(lake.InvalidRequestError, match=reason):
        create(catalog, options)
    assert catalog.list_tables("shop") == []


NEEDS_KEY = [
    {"merge-engine": "deduplicate"},
    {"sequence.field": "g"},
    {"rowkind.field": "kind"},
    {"ignore-delete": "true"},
    {"first-row.ignore-delete": "true"},
    {"ignore-update-before": "true"},
    {"fields.a.aggregate-function": "sum"},
    {"fields.g.sequence-group": "a"},
    {"changelog-producer": "input"},
]


@pytest.mark.parametrize("options", NEEDS_KEY, ids=str)
def test_a_table_without_a_primary_key_merges_nothing(catalog, options):
    (key,) = options
    with pytest.raises(lake.InvalidRequestError, match=rf"'{key}' .* has no primary key"):
        create(catalog, options, primary_key=())


def test_a_sequence_says_nothing_where_a_row_may_move_between_partitions(catalog):
    with pytest.raises(
        lake.InvalidRequestError, match=r"lacks the partition column 'dt'.* add 'dt'"
    ):
        create(catalog, {"sequence.field": "g", "bucket": "-1"}, partition_by=["dt"])
    create(catalog, {"sequence.field": "g"}, primary_key=["dt", "id"], partition_by=["dt"])


CHANGES = [
    ([lake.set_option("sequence.field", "nix")], "'sequence.field' names .*'nix'"),
    ([lake.set_option("fields.a.aggregate-function", "sum")], "needs a sequence group"),
    ([lake.set_option("fields.b.sequence-group", "a")], "'b', whose type STRING"),
    ([lake.set_option("ignore-delete", "true")], "option 'ignore-delete' ignores deletes"),
    ([lake.set_option("merge-engine", "first-row")], "is for merge engine 'partial-update'"),
    ([lake.set_option("rowkind.field", "g")], "'rowkind.field' names 'g', which is BIGINT"),
]


@pytest.mark.parametrize(("changes", "reason"), CHANGES, ids=lambda part: str(part)[:60])
def test_a_table_cannot_be_altered_into_one_that_could_not_be_made(catalog, changes, reason):
    options = {**PARTIAL, "partial-update.remove-record-on-delete": "true"}
    before = create(catalog, options).schema
    with pytest.raises(lake.InvalidRequestError, match=reason):
        catalog.alter_table("shop.orders", *changes)
    assert catalog.table("shop.orders").schema == before


def test_a_sequence_group_follows_a_renamed_column(catalog):
    create(catalog, {**PARTIAL, "fields.g,h.sequence-group": "a,b"})
    altered = catalog.alter_table(
        "shop.orders", lake.rename_column("g", "version"), lake.rename_column("a", "price")
    )
    assert altered.schema.options["fields.version,h.sequence-group"] == "price,b"


@pytest.mark.parametrize("older", ["deduplicate", "first-row", "partial-update"])
def test_deletes_once_ignored_stay_ignored_under_the_older_name_too(catalog, older):
    table = create(catalog, {"ignore-delete": "true"})
    assert table.options.ignore_delete
    storage, root = open_storage(table.location)
    path = f"{root}/schema/schema-0"
    members = json.loads(storage.read(path))
    members["options"] = {"bucket": "1", f"{older}.ignore-delete": "true"}
    storage.overwrite(path, json.dumps(members).encode())
    assert catalog.table("shop.orders").options.ignore_delete


def test_deletes_once_ignored_cannot_be_taken_again_under_another_name():
    options = {"bucket": "1", "ignore-delete": "true"}
    with pytest.raises(lake.InvalidRequestError, match="'ignore-delete' cannot change from true"):
        check_setting(options, "partial-update.ignore-delete", "false", has_snapshots=True)
    check_setting({}, "partial-update.ignore-delete", "true", has_snapshots=True)


def test_a_table_another_writer_made_against_the_rules_is_not_merged(catalog):
    schema = create(catalog, PARTIAL).schema
    foreign = replace(schema, options={**schema.options, "fields.nix.sequence-group": "a"})
    with pytest.raises(lake.InvalidRequestError, match="names 'nix', which is not a column"):
        merge_engine(foreign)


def test_a_column_of_the_key_may_be_a_sequence_column(keyed_table):
    table = keyed_table([("id", "BIGINT"), ("v", "INT")], **{"sequence.field": "v,id"})
    for value in (2, 3, 1):
        table.write(pa.table({"id": [1], "v": [value]}))
    table.compact()
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "v": 3}]


def test_spaces_around_the_columns_of_a_sequence_mean_nothing(catalog):
    schema = create(catalog, {"sequence.field": "g, h"}).schema
    assert merge_order(schema).sequence == ("g", "h")
