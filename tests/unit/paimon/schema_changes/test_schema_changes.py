"""Schema changes: what comes of each, what is refused, and how they are published."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.errors import CommitConflictError, UnavailableError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.schema_file import alter_schema, create_schema, read_schema
from lakeformat.paimon.schema import TableSchema, new_schema
from lakeformat.paimon.schema_changes.apply import apply_changes
from lakeformat.paimon.schema_changes.numbering import highest_id
from lakeformat.storage import MemoryStorage
from lakeformat.types.type_text import type_to_json

COLUMNS = [
    ("id", "INT NOT NULL"),
    ("dt", "DATE"),
    ("note", "STRING"),
    ("at", "ROW<x INT, y ROW<z INT>>"),
    ("items", "ARRAY<ROW<price INT>>"),
    ("counts", "MAP<STRING NOT NULL, INT>"),
]
START = new_schema(COLUMNS, time_millis=1)
KEYED = replace(START, primary_keys=("dt", "id"), partition_keys=("dt",))


def altered(*changes, schema=START, has_snapshots=True) -> TableSchema:
    return apply_changes(schema, changes, has_snapshots=has_snapshots, now=7)


def types(schema: TableSchema) -> dict:
    return {field.name: type_to_json(field.type) for field in schema.fields}


def test_a_change_makes_the_next_version_at_the_time_it_is_made():
    schema = altered(lake.update_comment("orders"))
    assert (schema.id, schema.time_millis, schema.comment) == (1, 7, "orders")


def test_changes_that_change_nothing_are_no_new_version():
    assert altered(lake.update_comment(None), lake.remove_option("never.set")) is START


def test_a_new_column_takes_the_next_ids_nested_fields_included():
    schema = altered(lake.add_column("more", "ROW<a INT, b INT>", comment="later"))
    more = schema.fields[-1]
    highest = START.highest_field_id
    assert (more.id, *(field.id for field in more.type.fields)) == (10, 11, 12)
    assert (highest, schema.highest_field_id, more.description) == (9, 12, "later")


def test_the_id_of_a_dropped_column_is_never_given_again():
    schema = altered(lake.drop_column("counts"), lake.add_column("counts", "INT"))
    assert schema.fields[-1].id == START.highest_field_id + 1
    assert altered(lake.drop_column("counts")).highest_field_id == START.highest_field_id


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ({"first": True}, ["new", "id", "dt"]),
        ({"after": "id"}, ["id", "new", "dt"]),
        ({"before": "id"}, ["new", "id", "dt"]),
        ({}, ["id", "dt", "note"]),
    ],
)
def test_a_new_column_goes_where_it_is_put_and_last_otherwise(place, names):
    schema = altered(lake.add_column("new", "INT", **place))
    assert schema.column_names[:3] == names


def test_an_option_puts_new_columns_before_the_partition_columns():
    schema = replace(KEYED, options={"add-column-before-partition": "true"})
    assert altered(lake.add_column("new", "INT"), schema=schema).column_names[:3] == [
        "id",
        "new",
        "dt",
    ]


@pytest.mark.parametrize(
    ("move", "names"),
    [
        (lake.update_column_position("note", first=True), ["note", "id", "dt", "at"]),
        (lake.update_column_position("id", after="note"), ["dt", "note", "id", "at"]),
        (lake.update_column_position("note", before="dt"), ["id", "note", "dt", "at"]),
        (lake.update_column_position("id", last=True), ["dt", "note", "at", "items"]),
    ],
)
def test_a_column_moves_among_its_siblings(move, names):
    assert altered(move).column_names[:4] == names


def test_nested_columns_are_reached_by_their_path():
    schema = altered(
        lake.add_column("at.y.w", pa.int64(), first=True),
        lake.rename_column(("items", "element", "price"), "amount"),
        lake.update_column_type("counts.value", "BIGINT"),
        lake.drop_column("at.x"),
        lake.update_column_comment("items.element.amount", "in cents"),
    )
    at, items, counts = (schema.fields[position].type for position in (3, 4, 5))
    [y] = at.fields
    assert [(field.name, field.id) for field in y.type.fields] == [("w", 10), ("z", 8)]
    [amount] = items.element.fields
    assert (amount.name, amount.id, amount.description) == ("amount", 9, "in cents")
    assert type_to_json(counts.value) == "BIGINT"


IGNORED = "changelog-producer.row-deduplicate-ignore-fields"
REMOVING = "partial-update.remove-record-on-sequence-group"


def test_renaming_a_column_takes_lists_of_columns_along():
    options = {
        "merge-engine": "partial-update",
        "fields.seq.sequence-group": "note",
        REMOVING: "seq",
        IGNORED: "note,seq",
    }
    columns = [("id", "INT"), ("note", "STRING"), ("seq", "INT")]
    schema = new_schema(columns, primary_key=["id"], options=options, time_millis=0)
    renamed = altered(lake.rename_column("seq", "number"), schema=schema)
    assert renamed.options == {
        "merge-engine": "partial-update",
        "fields.number.sequence-group": "note",
        REMOVING: "number",
        IGNORED: "note,number",
    }


def test_renaming_a_column_leaves_the_members_of_another_column_alone():
    columns = [("id", "INT"), ("k", "INT"), ("list", "ARRAY<ROW<k INT>>")]
    options = {
        "merge-engine": "aggregation",
        "fields.list.aggregate-function": "nested_update",
        "fields.list.nested-key": "k",
    }
    schema = new_schema(columns, primary_key=["id"], options=options, time_millis=0)
    renamed = altered(lake.rename_column("k", "key"), schema=schema)
    assert renamed.options == options


def test_renaming_a_column_takes_its_keys_and_options_along():
    schema = replace(
        KEYED,
        options={
            "bucket-key": "id,note",
            "sequence.field": "note",
            "rowkind.field": "note",
            "fields.note.aggregate-function": "sum",
            "fields.note,at.sequence-group": "items,note",
            "fields.notes.aggregate-function": "max",
        },
    )
    renamed = altered(lake.rename_column("note", "text"), schema=schema)
    assert renamed.options == {
        "bucket-key": "id,text",
        "sequence.field": "text",
        "rowkind.field": "text",
        "fields.text.aggregate-function": "sum",
        "fields.text,at.sequence-group": "items,text",
        "fields.notes.aggregate-function": "max",
    }
    assert altered(lake.rename_column("id", "key"), schema=KEYED).primary_keys == ("dt", "key")


def test_a_change_of_type_keeps_nullability_and_id():
    schema = altered(lake.update_column_type("id", "BIGINT"))
    assert types(schema)["id"] == "BIGINT NOT NULL"
    assert schema.fields[0].id == 0


CODED = replace(
    new_schema([*COLUMNS, ("code", "VARCHAR(5)")], time_millis=1),
    options={"bucket": "4", "bucket-key": "id,code"},
)


@pytest.mark.parametrize("wanted", ["BIGINT", "STRING"])
def test_a_bucket_key_keeps_its_type(wanted):
    with pytest.raises(
        lake.InvalidRequestError,
        match=rf"'id' is a bucket-key column, .* type from INT NOT NULL to {wanted} .* copy the ro",
    ):
        altered(lake.update_column_type("id", wanted), schema=CODED)


def test_a_bucket_key_can_change_to_a_type_with_the_same_buckets():
    longer = altered(lake.update_column_type("code", "STRING"), schema=CODED)
    assert types(longer)["code"] == "STRING"
    assert types(altered(lake.update_column_type("id", "INT"), schema=CODED)) == types(CODED)
    with pytest.raises(lake.InvalidRequestError, match=r"'code' is a bucket-key column"):
        altered(lake.update_column_type("code", "VARCHAR(3)"), schema=CODED)


AGGREGATED = {"merge-engine": "aggregation"}
SUMMED = {"fields.seq.aggregate-function": "last_value"}
COMPARED = {
    "sequence.field": {"sequence.field": "note, seq"},
    "fields.a,seq.sequence-group": {
        "merge-engine": "partial-update",
        "fields.a,seq.sequence-group": "note",
    },
    "fields.seq.aggregate-function": {**AGGREGATED, "fields.seq.aggregate-function": "max"},
    "fields.default-aggregate-function": {
        **AGGREGATED,
        "fields.default-aggregate-function": "min",
    },
}


def compared(option: str, kind: str, **others: str) -> TableSchema:
    """A table with the column ``seq`` of this type, whose values ``option`` compares."""
    columns = [("id", "INT NOT NULL"), ("note", "STRING"), ("a", "INT"), ("seq", kind)]
    options = COMPARED[option] | others
    return replace(new_schema(columns, time_millis=1), primary_keys=("id",), options=options)


@pytest.mark.parametrize("option", COMPARED)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("INT", "TINYINT"),
        ("DECIMAL(9, 2)", "INT"),
        ("TIMESTAMP(3)", "TIME(3)"),
        ("CHAR(2)", "CHAR(3)"),
    ],
)
def test_a_column_whose_values_are_compared_keeps_their_order(option, old, new):
    schema = compared(option, old)
    changed = lake.update_column_type("seq", new)
    with pytest.raises(
        lake.InvalidRequestError,
        match=rf"'seq' cannot .* to {re.escape(new)}: option '{option}' compares its val",
    ):
        altered(changed, schema=schema)
    assert types(altered(changed, schema=schema, has_snapshots=False))["seq"] == new


@pytest.mark.parametrize("option", COMPARED)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("INT", "BIGINT"),
        ("INT", "DOUBLE"),
        ("DECIMAL(9, 2)", "DECIMAL(12, 3)"),
        ("DATE", "TIMESTAMP(3)"),
        ("TIMESTAMP(3)", "TIMESTAMP(9)"),
    ],
)
def test_a_column_whose_values_are_compared_can_get_a_wider_type(option, old, new):
    schema = altered(lake.update_column_type("seq", new), schema=compared(option, old))
    assert types(schema)["seq"] == new


@pytest.mark.parametrize("option", ["sequence.field", "fields.seq.aggregate-function"])
@pytest.mark.parametrize(("old", "new"), [("INT", "STRING"), ("STRING", "INT")])
def test_numbers_whose_order_counts_do_not_become_texts_nor_texts_numbers(option, old, new):
    with pytest.raises(lake.InvalidRequestError, match=r"compares its values"):
        altered(lake.update_column_type("seq", new), schema=compared(option, old))


@pytest.mark.parametrize(("old", "new"), [("TIMESTAMP(6)", "TIMESTAMP(0)"), ("BIGINT", "DOUBLE")])
def test_only_in_a_sequence_must_no_two_values_become_equal(old, new):
    """The greatest value is the same, before and after digits of all values are cut off."""
    changed = lake.update_column_type("seq", new)
    greatest = compared("fields.seq.aggregate-function", old)
    assert types(altered(changed, schema=greatest))["seq"] == new
    for option in ("sequence.field", "fields.a,seq.sequence-group"):
        with pytest.raises(lake.InvalidRequestError, match=r"or make some of them equal"):
            altered(changed, schema=compared(option, old))


def test_other_columns_of_such_tables_can_change_to_any_type():
    for option in ("sequence.field", "fields.seq.aggregate-function"):
        schema = altered(lake.update_column_type("a", "STRING"), schema=compared(option, "INT"))
        assert types(schema)["a"] == "STRING"
    summed = compared("fields.seq.aggregate-function", "INT", **SUMMED)
    changed = altered(lake.update_column_type("seq", "STRING"), schema=summed)
    assert types(changed)["seq"] == "STRING"


def test_defaults_of_older_versions_are_spelled_out_by_the_new_one():
    old = replace(START, version=1)
    schema = altered(lake.update_comment("x"), schema=old)
    assert (schema.version, schema.options) == (3, {"bucket": "1", "file.format": "orc"})


REFUSED = [
    (lake.add_column("note", "INT"), "column 'note' exists already"),
    (lake.add_column("n", "INT NOT NULL"), "must allow nulls"),
    (lake.add_column("n", "INT", after="nix"), "no column 'nix'"),
    (lake.add_column("at.n", "INT", after="at.x"), "no column 'at.x'; choose one of x, y$"),
    (lake.update_column_position("at.x", before="nix"), "no column 'nix'; choose one of y$"),
    (lake.add_column("note.x", "INT"), "'note' is STRING, which has no fields"),
    (lake.add_column("counts.key.x", "INT"), "'value' after a MAP"),
    (lake.drop_column("nix"), "no column 'nix'; choose one of id, dt"),
    (lake.drop_column("at.y.z"), "no field would be left.*drop 'at.y'"),
    (lake.drop_column("dt"), "partition column, which cannot be dropped"),
    (lake.drop_column("id"), "primary-key column, which cannot be dropped"),
    (lake.rename_column("dt", "day"), "partition column, which cannot be renamed"),
    (lake.rename_column("id", "note"), "column 'note' exists already"),
    (lake.update_column_type("id", "BIGINT"), "primary-key column"),
    (lake.update_column_type("dt", "STRING"), "partition column"),
    (lake.update_column_type("at", "INT"), "no such cast"),
    (lake.update_column_type("at", "ROW<x BIGINT, y INT>"), "one part of the column, .* 'at.x'"),
    (lake.update_column_type("note", "ARRAY<INT>"), "Add a column of the new type$"),
    (lake.update_column_type("note", "STRING NOT NULL"), "cannot become NOT NULL"),
    (lake.update_column_nullability("note", nullable=False), "'false' first"),
    (lake.update_column_nullability("id", nullable=True), "cannot be null"),
    (lake.update_column_position("id", after="id"), "before or after itself"),
    (lake.set_option("bucket-key", "id"), "cannot change once a table has a snapshot"),
    (lake.set_option("force-lookup", "true"), "cannot change once a table has a snapshot"),
    (lake.set_option("sequence.field.sort-order", "descending"), "once a table has a snapshot"),
    (lake.set_option("bucket", "4"), "only a positive number can change"),
    (lake.set_option("type", "format-table"), "cannot be changed"),
    (lake.set_option("path", "/elsewhere"), "cannot be changed"),
    (lake.set_option("primary-key", "note"), "cannot be changed"),
    (lake.set_option("partition", "note"), "cannot be changed"),
    (lake.set_option("target-file-size", "big"), "must be a size"),
    (lake.set_option("bukcet", "1"), "did you mean 'bucket'"),
]


@pytest.mark.parametrize(("change", "reason"), REFUSED, ids=lambda part: str(part)[:40])
def test_what_the_format_forbids_is_refused_with_its_reason(change, reason):
    with pytest.raises(lake.LakeError, match=reason):
        altered(change, schema=KEYED)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: lake.add_column("_KEY_id", "INT"),
        lambda: lake.add_column("a", "NUMBER"),
        lambda: lake.add_column("a", "INT", first=True, after="b"),
        lambda: lake.rename_column("a", "rowkind"),
        lambda: lake.update_column_position("a"),
        lambda: lake.drop_column(""),
        lambda: lake.drop_column("a..b"),
    ],
)
def test_a_change_that_can_never_be_is_refused_when_it_is_made(ask):
    with pytest.raises(lake.InvalidRequestError):
        ask()


def test_two_positions_are_refused_by_the_names_of_their_arguments():
    with pytest.raises(lake.InvalidRequestError, match=r"pass only one of first and after$"):
        lake.add_column("a", "INT", first=True, after="b")


def test_a_dropped_column_must_not_be_named_by_an_option():
    schema = replace(START, options={"sequence.field": "note"})
    with pytest.raises(
        lake.InvalidRequestError, match=r"'sequence.field' names the column 'note', which"
    ):
        altered(lake.drop_column("note"), schema=schema)
    with pytest.raises(lake.InvalidRequestError, match="'nope', which does not exist; the columns"):
        altered(lake.set_option("sequence.field", "nope"))
    both = altered(lake.drop_column("note"), lake.remove_option("sequence.field"), schema=schema)
    assert both.options == {}


def test_a_lossy_change_of_type_can_be_forbidden_by_an_option():
    strict = replace(START, options={"disable-explicit-type-casting": "true"})
    assert types(altered(lake.update_column_type("id", "SMALLINT")))["id"] == "SMALLINT NOT NULL"
    assert types(altered(lake.update_column_type("id", "BIGINT"), schema=strict))
    with pytest.raises(lake.InvalidRequestError, match="without loss"):
        altered(lake.update_column_type("id", "SMALLINT"), schema=strict)


def test_nulls_can_be_forbidden_where_the_option_says_so():
    brave = replace(START, options={"alter-column-null-to-not-null.disabled": "false"})
    schema = altered(lake.update_column_nullability("note", nullable=False), schema=brave)
    assert types(schema)["note"] == "STRING NOT NULL"


def test_options_files_depend_on_are_free_until_the_first_snapshot():
    schema = replace(START, options={"bucket-key": "id"})
    with pytest.raises(lake.InvalidRequestError, match="once a table has a snapshot"):
        altered(lake.remove_option("bucket-key"), schema=schema)
    freed = altered(lake.remove_option("bucket-key"), schema=schema, has_snapshots=False)
    assert freed.options == {}


@pytest.mark.parametrize("wanted", ["-1", "-2"])
def test_a_table_with_buckets_keeps_a_number_of_them(wanted):
    schema = replace(START, options={"bucket": "3", "bucket-key": "id"})
    assert altered(lake.set_option("bucket", "4"), schema=schema).options["bucket"] == "4"
    with pytest.raises(lake.InvalidRequestError, match="cannot change from 3 to"):
        altered(lake.set_option("bucket", wanted), schema=schema)


@pytest.mark.parametrize("wanted", ["0", "-7", "many"])
def test_a_number_of_buckets_that_no_table_has_is_refused_as_such(wanted):
    schema = replace(START, options={"bucket": "3", "bucket-key": "id"})
    named = f"'bucket' is '{wanted}', but must be -1, -2 or a number of buckets"
    with pytest.raises(lake.InvalidRequestError, match=named):
        altered(lake.set_option("bucket", wanted), schema=schema)


def test_a_stored_number_of_buckets_that_cannot_be_read_is_named():
    damaged = replace(KEYED, options={**KEYED.options, "bucket": "four"})
    with pytest.raises(lake.InvalidRequestError, match="'bucket' is 'four', but must be"):
        altered(lake.set_option("bucket", "4"), schema=damaged)


UNREADABLE = [
    ("changelog-producer", "inputs", "input"),
    ("deletion-vectors.enabled", "yes", "false"),
    ("ignore-delete", "yes", "false"),
    ("ignore-delete", "yes", "true"),
    ("deduplicate.ignore-delete", "yes", "false"),
    ("ignore-update-before", "yes", "true"),
]


@pytest.mark.parametrize(("key", "stored", "right"), UNREADABLE)
def test_a_stored_value_that_cannot_be_read_can_be_corrected_or_removed(key, stored, right):
    damaged = replace(KEYED, options={"bucket": "1", key: stored})
    assert altered(lake.set_option(key, right), schema=damaged).options[key] == right
    assert key not in altered(lake.remove_option(key), schema=damaged).options


@pytest.mark.parametrize(("key", "stored", "right"), UNREADABLE)
def test_a_stored_value_that_cannot_be_read_allows_changes_of_something_else(key, stored, right):
    damaged = replace(KEYED, options={"bucket": "1", key: stored})
    assert altered(lake.update_comment("orders"), schema=damaged).options[key] == stored


def test_deletion_vectors_that_cannot_be_read_count_as_disabled_as_in_java():
    damaged = replace(KEYED, options={"bucket": "1", "deletion-vectors.enabled": "yes"})
    enable = lake.set_option("deletion-vectors.enabled", "true")
    with pytest.raises(lake.InvalidRequestError, match="cannot become 'true': without a full"):
        altered(enable, schema=damaged)
    modifiable = altered(lake.set_option("deletion-vectors.modifiable", "true"), schema=damaged)
    assert altered(enable, schema=modifiable).options["deletion-vectors.enabled"] == "true"


def test_an_unreadable_producer_can_be_corrected_where_rows_depend_on_it():
    damaged = replace(
        KEYED,
        options={"bucket": "1", "merge-engine": "partial-update", "changelog-producer": "looup"},
    )
    corrected = altered(lake.set_option("changelog-producer", "lookup"), schema=damaged)
    assert corrected.options["changelog-producer"] == "lookup"


def test_setting_a_foreign_option_to_what_it_is_changes_nothing():
    schema = replace(START, options={"merge-engine": "aggregation"})
    assert altered(lake.set_option("merge-engine", "aggregation"), schema=schema) is schema


@pytest.mark.parametrize(
    ("before", "removed", "reason"),
    [
        ({"bucket": "4"}, "bucket", "cannot be removed"),
        ({"deletion-vectors.enabled": "true"}, "deletion-vectors.enabled", "could be read again"),
        ({"ignore-delete": "true"}, "ignore-delete", "from true to false"),
        ({"first-row.ignore-delete": "true"}, "first-row.ignore-delete", "from true to false"),
        ({"ignore-update-before": "true"}, "ignore-update-before", "from true to false"),
        ({}, "type", "cannot be changed"),
    ],
)
def test_some_options_cannot_go_back_to_their_default(before, removed, reason):
    schema = replace(START, options={**before, "type": "table"})
    with pytest.raises(lake.InvalidRequestError, match=reason):
        altered(lake.remove_option(removed), schema=schema)


def test_an_option_is_removed_if_its_older_name_has_the_same_effect():
    both = {"ignore-delete": "true", "deduplicate.ignore-delete": "true"}
    left = altered(lake.remove_option("ignore-delete"), schema=replace(START, options=both))
    assert left.options == {"deduplicate.ignore-delete": "true"}


LOOKS_UP = {"changelog-producer": "lookup"}
SUMS = {"merge-engine": "aggregation", "fields.default-aggregate-function": "last_value"}
VECTORS = "deletion-vectors.enabled"
MODIFIABLE = {"deletion-vectors.modifiable": "true"}


@pytest.mark.parametrize("engine", [SUMS, {"merge-engine": "partial-update"}])
@pytest.mark.parametrize(
    ("before", "change"),
    [
        ({}, lake.set_option("changelog-producer", "lookup")),
        ({"changelog-producer": "input"}, lake.set_option("changelog-producer", "lookup")),
        (LOOKS_UP, lake.set_option("changelog-producer", "none")),
        (LOOKS_UP, lake.remove_option("changelog-producer")),
        # What another engine let the table have is no reason to change it once more.
        ({**LOOKS_UP, **MODIFIABLE}, lake.set_option("changelog-producer", "full-compaction")),
    ],
)
def test_whether_rows_are_looked_up_is_fixed_where_that_decides_what_they_are(
    engine, before, change
):
    schema = replace(KEYED, options={"bucket": "1", **engine, **before})
    with pytest.raises(lake.InvalidRequestError, match="'changelog-producer' cannot change from"):
        altered(change, schema=schema)
    assert altered(change, schema=schema, has_snapshots=False)


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ({}, lake.set_option("changelog-producer", "lookup")),
        (LOOKS_UP, lake.set_option("changelog-producer", "none")),
        (SUMS, lake.set_option("changelog-producer", "full-compaction")),
        ({**SUMS, "changelog-producer": "input"}, lake.remove_option("changelog-producer")),
        ({**SUMS, **LOOKS_UP, VECTORS: "true"}, lake.set_option("changelog-producer", "none")),
        ({**SUMS, **MODIFIABLE}, lake.set_option(VECTORS, "true")),
    ],
)
def test_the_producer_of_a_changelog_may_change_where_rows_stay_what_they_are(before, change):
    schema = replace(KEYED, options={"bucket": "1", **before})
    assert altered(change, schema=schema).id == 1


NAMES = st.sampled_from(["a", "b", "c", "d", "a.x", "a.y", "b.element.z"])
CHANGES = st.one_of(
    st.builds(
        lake.add_column,
        NAMES,
        st.sampled_from(["INT", "ROW<x INT, y STRING>", "ARRAY<ROW<z INT>>"]),
    ),
    st.builds(lake.drop_column, NAMES),
    st.builds(lake.rename_column, NAMES, st.sampled_from(["a", "b", "c", "x"])),
    st.builds(lake.update_column_type, NAMES, st.sampled_from(["BIGINT", "STRING", "INT"])),
    st.builds(lake.update_column_position, NAMES, first=st.just(True)),
    st.builds(lake.update_column_comment, NAMES, st.sampled_from([None, "said"])),
)


def all_ids(schema: TableSchema) -> list[int]:
    text = json.dumps(json.loads(schema.to_json())["fields"])
    found: list[int] = []
    json.loads(
        text, object_hook=lambda members: found.append(members["id"]) if "id" in members else None
    )
    return found


@given(st.lists(CHANGES, max_size=12))
def test_ids_stay_unique_and_never_come_back_whatever_is_changed(changes):
    schema = new_schema([("a", "ROW<x INT>"), ("k", "INT")], time_millis=1)
    ever = set(all_ids(schema))
    for change in changes:
        try:
            after = altered(change, schema=schema)
        except lake.LakeError:
            continue
        ids = all_ids(after)
        assert len(ids) == len(set(ids))
        assert schema.highest_field_id <= after.highest_field_id
        assert after.highest_field_id >= highest_id(after.fields)
        assert not (set(ids) - set(all_ids(schema))) & ever
        assert TableSchema.from_json(json.loads(after.to_json())) == after
        ever |= set(ids)
        schema = after


LAYOUT = TableLayout("t")


class Interrupted(MemoryStorage):
    """Another writer publishes a schema just before ours, a given number of times."""

    rivals = 0

    def create(self, path: str, content: bytes) -> bool:
        if self.rivals and "schema-" in path and b'"id": 0' not in content.partition(b"fields")[0]:
            self.rivals -= 1
            number = int(path.rpartition("-")[2])
            theirs = replace(START, id=number, comment=f"rival {number}")
            super().create(path, theirs.to_json())
        return super().create(path, content)


def storage_with_table() -> Interrupted:
    storage = Interrupted("schemas")
    create_schema(storage, LAYOUT, START)
    return storage


def test_a_lost_race_is_checked_again_on_the_schema_of_the_winner():
    storage = storage_with_table()
    storage.rivals = 2
    schema = alter_schema(storage, LAYOUT, [lake.add_column("new", "INT")], Environment())
    assert (schema.id, schema.comment, schema.column_names[-1]) == (3, "rival 2", "new")
    assert read_schema(storage, LAYOUT, 3) == schema


def test_races_lost_without_end_are_a_conflict():
    storage = storage_with_table()
    storage.rivals = 1000
    with pytest.raises(
        CommitConflictError, match="20 times during this change, so the change was not made"
    ):
        alter_schema(storage, LAYOUT, [lake.add_column("new", "INT")], Environment())


@pytest.mark.parametrize("arrived", [True, False])
def test_a_lost_answer_is_found_by_reading_the_schema_back(arrived):
    storage = storage_with_table()
    create = storage.create

    def unanswered(path: str, content: bytes) -> bool:
        if arrived:
            create(path, content)
        raise UnavailableError("no answer")

    storage.create = unanswered
    change = [lake.add_column("new", "INT")]
    if arrived:
        assert alter_schema(storage, LAYOUT, change, Environment()).id == 1
    else:
        with pytest.raises(UnavailableError):
            alter_schema(storage, LAYOUT, change, Environment())
