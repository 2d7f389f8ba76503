"""Runs in pypaimon's own environment: answers one JSON request per line until its input ends.

Rows travel in Arrow IPC files, which the different pyarrow versions on both sides can read.
Only the standard library, pypaimon and the pyarrow it pins are there.
"""

import json
import os
import sys
import traceback

import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange


def main():
    """Keep standard output for answers; redirect pypaimon's output to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


def answer(request):
    """Return the result of a verb, or its error."""
    catalog = CatalogFactory.create(request.pop("catalog"))
    try:
        return {"result": VERBS[request.pop("verb")](catalog, **request)}
    except Exception as error:  # noqa: BLE001 - the tests decide what it means
        return {"error": repr(error), "trace": traceback.format_exc()}


def create_table(catalog, table, columns, options, primary_keys, partition_keys):
    """Make a table with the schema of an Arrow IPC file."""
    schema = Schema.from_pyarrow_schema(
        read_ipc(columns).schema,
        partition_keys=partition_keys or None,
        primary_keys=primary_keys or None,
        options=options,
    )
    catalog.create_database(table.partition(".")[0], True)
    catalog.create_table(table, schema, False)


def write_rows(catalog, table, rows):
    """Append the rows of an Arrow IPC file in one commit."""
    builder = catalog.get_table(table).new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    try:
        write.write_arrow(read_ipc(rows))
        commit.commit(write.prepare_commit())
    finally:
        write.close()
        commit.close()


def read_rows(catalog, table, into, where_equal, snapshot, tag=None):
    """Write the rows of a table, now or at a snapshot or tag, into an Arrow IPC file."""
    found = catalog.get_table(table)
    if tag is not None:
        found = found.copy({"scan.tag-name": tag})
    if snapshot is not None:
        found = found.copy({"scan.snapshot-id": str(snapshot)})
    builder = found.new_read_builder()
    if where_equal:
        builder = builder.with_filter(builder.new_predicate_builder().equal(*where_equal))
    splits = builder.new_scan().plan().splits()
    rows = builder.new_read().to_arrow(splits)
    with pa.OSFile(into, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as file:
        file.write_table(rows)


def change_columns(catalog, table, drop, rename, add):
    """Make one new schema version: columns to drop, new names by old ones, INT columns to add."""
    changes = [SchemaChange.drop_column(name) for name in drop]
    changes += [SchemaChange.rename_column(old, new) for old, new in rename.items()]
    changes += [SchemaChange.add_column(name, AtomicType("INT")) for name in add]
    catalog.alter_table(table, changes)


def describe_table(catalog, table):
    """The metadata as pypaimon reads it."""
    found = catalog.get_table(table)
    snapshot = found.snapshot_manager().get_latest_snapshot()
    return {
        "columns": [[field.name, str(field.type)] for field in found.fields],
        "comment": found.table_schema.comment,
        "options": found.table_schema.options,
        "latest_snapshot": snapshot.id if snapshot else None,
    }


def list_tables(catalog, database):
    """The tables pypaimon sees in a database."""
    return sorted(catalog.list_tables(database))


def read_ipc(path):
    with pa.OSFile(path, "rb") as source:
        return pa.ipc.open_file(source).read_all()


VERBS = {
    "change_columns": change_columns,
    "create_table": create_table,
    "describe_table": describe_table,
    "list_tables": list_tables,
    "read_rows": read_rows,
    "write_rows": write_rows,
}

if __name__ == "__main__":
    main()
