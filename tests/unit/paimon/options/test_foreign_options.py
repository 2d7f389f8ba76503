"""Options of other engines: every key that tables of Paimon carry, tried in every operation."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.options import TableOptions, declared_options, find_option
from lakeformat.paimon.options.foreign import (
    FOREIGN_OPTIONS,
    MEANING_PREFIXES,
    ForeignClass,
    Trait,
    find_foreign,
)
from lakeformat.paimon.options.operation import Operation

LISTED = Path(__file__).resolve().parents[3] / "data/paimon_options.tsv"
VALUES = dict(
    line.split("\t")
    for line in LISTED.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)

OPERATIONS: dict[Operation, Callable[[lake.Table], object]] = {
    Operation.READ: lambda table: table.scan().count(),
    Operation.CHANGES: lambda table: [*table.changes(1, mode="delta").to_batches()],
    Operation.WRITE: lambda table: table.write(pa.table({"id": [9], "v": [9]})),
    Operation.COMPACT: lambda table: table.compact(),
    Operation.COMMIT: lambda table: table.compact_manifests(),
    Operation.EXPIRE: lambda table: table.expire_snapshots(retain_max=1, retain_min=1),
    Operation.TAG: lambda table: table.tags.create("a-tag"),
}

REFUSED_WHERE_IT_IS_DECLARED = {
    (Operation.READ, key)
    for key in ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag")
}

TRAITS = {
    "keyed": frozenset({Trait.KEYED, Trait.MAIN}),
    "append": frozenset({Trait.MAIN}),
}
KINDS = {"keyed": {"primary_key": ["id"]}, "append": {}}


def change(path: Path, members: dict[str, object]) -> None:
    """Give a metadata file other members."""
    path.write_text(json.dumps(json.loads(path.read_bytes()) | members), encoding="utf-8")


@pytest.fixture(scope="module")
def templates(tmp_path_factory) -> dict[str, Path]:
    """One small table of each kind, with two snapshots."""
    home = tmp_path_factory.mktemp("templates")
    catalog = lake.open_catalog(f"file://{home}")
    catalog.create_database("shop")
    for name, keys in KINDS.items():
        table = catalog.create_table(
            f"shop.{name}",
            [("id", "BIGINT"), ("v", "BIGINT")],
            options={"bucket": "1", **({} if keys else {"bucket-key": "id"})},
            **keys,
        )
        for row in range(2):
            table.write(pa.table({"id": [row], "v": [row]}))
        table.tags.create("one", snapshot=1)
        change(home / f"shop.db/{name}/snapshot/snapshot-2", {"watermark": 5})
    return {name: home / f"shop.db/{name}" for name in KINDS}


@pytest.fixture
def with_options(templates, tmp_path) -> Callable[[str, dict[str, str]], lake.Table]:
    """Opens a copy of a table to which another engine has given options."""

    def make(kind: str, options: dict[str, str]) -> lake.Table:
        place = tmp_path / f"shop.db/t{len(list(tmp_path.iterdir()))}"
        shutil.copytree(templates[kind], place)
        schema = place / "schema/schema-0"
        there = json.loads(schema.read_bytes())["options"]
        change(schema, {"options": there | options})
        return lake.open_table(f"file://{place}")

    return make


@pytest.mark.parametrize("key", VALUES)
def test_every_key_of_paimon_is_declared(key):
    assert find_option(key) is not None or find_foreign(key) is not None


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", [key for key in VALUES if key != "data-evolution.enabled"])
def test_each_operation_works_or_is_refused_by_the_name_of_the_key(with_options, kind, key):
    table = with_options(kind, {key: VALUES[key]})
    foreign = None if find_option(key) else find_foreign(key)
    for operation, run in OPERATIONS.items():
        if foreign and foreign.forbids(operation, VALUES[key], TRAITS[kind]):
            with pytest.raises(lake.UnsupportedError) as error:
                run(table)
            assert f"{key!r} = {VALUES[key]!r} {foreign.says}" in str(error.value)
            assert foreign.advice[1:] in str(error.value)
        elif (operation, key) in REFUSED_WHERE_IT_IS_DECLARED:
            with pytest.raises(lake.UnsupportedError, match=re.escape(repr(key))):
                run(table)
        else:
            run(table)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("key", [key for key in VALUES if key != "data-evolution.enabled"])
def test_maintenance_fails_by_the_name_of_the_key_or_not_at_all(with_options, key):
    table = with_options("keyed", {key: VALUES[key]})
    report = table.maintain()
    foreign = None if find_option(key) else find_foreign(key)
    forbidden = foreign is not None and any(
        foreign.forbids(operation, VALUES[key], TRAITS["keyed"])
        for operation in (Operation.COMPACT, Operation.EXPIRE)
    )
    assert all(forbidden and repr(key) in str(error) for error in report.failed)
    assert report.is_healthy or report.obstacles


def test_a_table_of_joined_files_is_written_and_expired_and_not_compacted(catalog):
    options = {"data-evolution.enabled": "true", "row-tracking.enabled": "true"}
    table = catalog.create_table("shop.t", [("id", "BIGINT")], options=options)
    for row in range(2):
        table.write(pa.table({"id": [row]}))
    assert table.scan().count() == 2
    with pytest.raises(lake.UnsupportedError, match=r"'data-evolution\.enabled'"):
        table.compact()
    assert table.expire_snapshots(retain_max=1, retain_min=1).snapshots == (1,)


def test_no_key_is_declared_twice():
    own = {key for option in declared_options() for key in (option.key, *option.older_keys)}
    assert not own & FOREIGN_OPTIONS.keys()


@pytest.mark.parametrize("key", sorted(FOREIGN_OPTIONS))
def test_a_refusal_says_why_and_what_to_do_next(key):
    option = FOREIGN_OPTIONS[key]
    is_refused = option.kind is ForeignClass.MEANING
    assert is_refused == bool(option.refuses) == bool(option.advice)
    assert len(option.says) > 15


NEEDS_MORE = {("metadata.iceberg.storage", each) for each in ("hive-catalog", "rest-catalog")}
"""Values that are carried out, but need an address."""
HARMLESS = [
    (key, value)
    for key, option in FOREIGN_OPTIONS.items()
    for value in option.harmless
    if option.kind is ForeignClass.MEANING and (key, value) not in NEEDS_MORE
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("key", "value"), HARMLESS)
def test_an_option_that_is_off_refuses_nothing(with_options, key, value):
    table = with_options("keyed", {key: value.upper()})
    assert [name for name, run in OPERATIONS.items() if is_refused(run, table)] == []


def is_refused(run: Callable[[lake.Table], object], table: lake.Table) -> bool:
    try:
        run(table)
    except (lake.UnsupportedError, lake.InvalidRequestError):
        return True
    return False


@pytest.mark.parametrize("prefix", MEANING_PREFIXES)
def test_an_unknown_key_that_may_decide_about_rows_is_refused(with_options, prefix):
    key = f"{prefix}of-tomorrow"
    table = with_options("append", {key: "true"})
    for operation in (Operation.READ, Operation.CHANGES, Operation.WRITE, Operation.COMPACT):
        with pytest.raises(lake.UnsupportedError, match=re.escape(repr(key))):
            OPERATIONS[operation](table)
    for operation in (Operation.COMMIT, Operation.EXPIRE, Operation.TAG):
        OPERATIONS[operation](table)


WITHOUT_ROWS: dict[str, Callable[[lake.Table], object]] = {
    "health": lambda table: table.health(unknown=True),
    "expire": OPERATIONS[Operation.EXPIRE],
    "tag": OPERATIONS[Operation.TAG],
    "branch": lambda table: table.branches.create("dev"),
    "orphans": lambda table: table.remove_orphans(dry_run=False),
    "rollback": lambda table: table.rollback(snapshot=1),
    "cut history": lambda table: table.rollback(snapshot=1, as_latest=False),
    "consumers": lambda table: table.consumers.list(),
}
OF_ROWS = {
    "bucket-key": "gone",
    "file.format": "lance",
    "file.compression": "of-tomorrow",
    "sequence.field": "gone",
    "pk-clustering-override": "true",
    "primary-key.nullable": "true",
    "record-level.expire-time": "1 d",
    "sequence.snapshot-ordering": "true",
    "write-buffer-size": "large",
    "fields.v.aggregate-function": "of-tomorrow",
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("key", OF_ROWS)
@pytest.mark.parametrize("operation", WITHOUT_ROWS)
def test_what_reads_no_row_is_refused_by_no_option_about_rows(with_options, operation, key):
    assert not is_refused(WITHOUT_ROWS[operation], with_options("keyed", {key: OF_ROWS[key]}))


def test_what_concerns_partitions_refuses_writing_where_there_are_some(catalog, tmp_path):
    catalog.create_table("shop.t", [("id", "BIGINT"), ("dt", "STRING")], partition_by=["dt"])
    strict = {"options": {"partition.timestamp-format.strict": "true"}}
    change(tmp_path / "shop.db/t/schema/schema-0", strict)
    with pytest.raises(lake.UnsupportedError, match="refuses rows of partitions"):
        catalog.table("shop.t").write(pa.table({"id": [1], "dt": ["2026-01-01"]}))


def test_a_table_that_publishes_iceberg_metadata_is_read_and_never_left_behind(with_options):
    table = with_options("keyed", {"metadata.iceberg.storage": "glue-catalog"})
    assert table.scan().count() == 2
    for name in ("expire", "tag", "rollback", "cut history"):
        with pytest.raises(lake.UnsupportedError, match="set it to 'disabled'"):
            WITHOUT_ROWS[name](table)
    assert [each.id for each in table.snapshots()] == [1, 2]


@pytest.mark.parametrize(
    ("older", "newer", "value"),
    [
        ("write.compaction-skip", "write-only", "true"),
        ("delete-file.thread-num", "file-operation.thread-num", "3"),
        ("snapshot.expire.clean-empty-directories", "snapshot.clean-empty-directories", "true"),
    ],
)
def test_an_old_key_is_read_as_its_successor(older, newer, value):
    option = find_option(newer)
    assert option is not None
    assert option is find_option(older)
    assert TableOptions({older: value}).text(option) == value
    assert TableOptions({older: value, newer: "x"}).text(option) == "x"


OWN_KEYS = [
    *("created_by", "owner", "comment", "dbt.model", "transient_lastDdlTime", "connector"),
    *("schema.watermark.0.rowtime", "schema.4.expr", "hive.table.owner", "fields.v.team"),
    *("metadata.iceberg.catalog", "orc.bloom.filter.columns", "commit.callback.a.B.param"),
]


@pytest.mark.parametrize("key", OWN_KEYS)
def test_a_table_may_have_keys_of_its_own(catalog, key):
    columns = [("id", "BIGINT"), ("v", "BIGINT")]
    table = catalog.create_table("shop.t", columns, options={key: "x"})
    table = catalog.alter_table("shop.t", lake.set_option(key, "y"))
    assert table.options.to_dict() == {key: "y"}


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("snapshot.num-retain.max", "snapshot.num-retained.max"),
        ("target-filesize", "target-file-size"),
        ("Merge_Engine", "merge-engine"),
        ("bukcet", "bucket"),
        ("deletion-vectors.enable", "deletion-vectors.enabled"),
        ("sink.paralelism", "sink.parallelism"),
        ("fields.a_long_name_of_a_column.agregate-function", None),
    ],
)
def test_a_slip_of_the_pen_is_refused_with_the_key_that_was_meant(catalog, slip, meant):
    meant = meant or slip.replace("agreg", "aggreg")
    catalog.create_table("shop.t", [("id", "BIGINT")])
    asked = rf"no option {re.escape(repr(slip))}; did you mean {re.escape(repr(meant))}\?"
    with pytest.raises(lake.InvalidRequestError, match=asked):
        catalog.create_table("shop.u", [("id", "BIGINT")], options={slip: "1"})
    with pytest.raises(lake.InvalidRequestError, match=asked):
        catalog.alter_table("shop.t", lake.set_option(slip, "1"))


@pytest.mark.parametrize("key", ["fs.s3a.secret.key", "jdbc.password", "auth_token"])
def test_a_credential_is_no_option_of_a_table(catalog, key):
    with pytest.raises(lake.InvalidRequestError, match="plain text in its metadata") as refusal:
        catalog.create_table("shop.t", [("id", "BIGINT")], options={key: "hush"})
    assert "hush" not in str(refusal.value)


def test_what_this_version_does_not_carry_out_is_not_set_by_it(catalog):
    options = {"record-level.expire-time": "1 d"}
    with pytest.raises(lake.InvalidRequestError, match=r"rows beyond a certain age.*remove it"):
        catalog.create_table("shop.t", [("id", "BIGINT")], options=options)


def test_health_notes_what_is_ignored_and_what_is_refused_and_judges_by_neither(with_options):
    plain = with_options("keyed", {}).health()
    table = with_options(
        "keyed",
        {
            "sink.parallelism": "4",
            "file.block-size": "1 mb",
            "dbt.model": "orders",
            "record-level.expire-time": "1 d",
        },
    )
    report = table.health()
    assert report.notes == (
        "'record-level.expire-time' = '1 d' deletes rows beyond a certain age when files are "
        "compacted; this version refuses: compact",
        "ignored options, which only affect the layout of files: 'file.block-size'",
        "unknown options, kept for the engine that set them: 'dbt.model'",
    )
    assert (report.verdict, report.score, report.reasons) == (
        plain.verdict,
        plain.score,
        plain.reasons,
    )
    assert plain.notes == ()


def test_health_knows_the_options_of_the_rest_catalog_in_which_a_table_is_published(with_options):
    address = {"metadata.iceberg.rest.uri": "http://catalog", "metadata.iceberg.other": "1"}
    assert with_options("keyed", address).health().notes == (
        "unknown options, kept for the engine that set them: 'metadata.iceberg.other'",
    )
