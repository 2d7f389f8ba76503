"""Only the wings and the catalogs distinguish formats by hand; all other code asks the contract.

A caller asks a table with ``operations``, ``require``, ``instead``, ``refused_arguments`` and the
methods of ``lakeformat/tables/table.py``. Then a new format needs no change of the caller.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("airflow_provider_lake", "dags", "lakeformat", "spark_jobs")
WINGS = ("catalog", "iceberg", "mixed", "paimon", "publish")
CLASSES = {"IcebergTable", "MixedTable", "lake.IcebergTable", "lake.MixedTable", "lake.Table"}
FORMATS = {"iceberg", "mixed", "paimon"}

ALLOWED = {
    "airflow_provider_lake/jobs/table_job.py: "
    "self.lake_hook.catalog_options.get('format', 'paimon') == 'paimon'": "a task opens no catalog "
    "of Paimon tables before its job runs, because their tables have every operation",
    "lakeformat/cli/inspect.py: isinstance(opened, lake.Table)": "commands print Paimon's system "
    "tables with the columns that metadata_commands.py declares for each",
    "lakeformat/cli/rows.py: table.format == 'iceberg'": "only changes of Iceberg tables can begin "
    "at a branch, and a branch of the name of a time is too rare for a method of the contract",
    "lakeformat/cli/warehouse.py: isinstance(found, lake.Table)": "named_table opens tables "
    "for commands that only Paimon has; the refusal names the command to use",
}


def test_no_further_code_distinguishes_formats_by_hand():
    found = [*_questions()]
    further = [each for each in found if each not in ALLOWED]
    assert not further, "ask a method of the contract instead:\n" + "\n".join(further)
    assert sorted(ALLOWED.keys() - {*found}) == []


def test_each_way_to_distinguish_formats_is_found():
    code = """
table.format == "iceberg"
found.format in ("iceberg", "mixed")
isinstance(table, IcebergTable)
isinstance(table, lake.Table | lake.MixedTable)
isinstance(opened, (lake.Table, Results))
options.get("format") == "iceberg"
options.get("format", DEFAULT) == DEFAULT
"""
    assert len([*_in_code(ast.parse(code))]) == 7
    other = 'file.format == "parquet"\nisinstance(rows, pa.Table)\nisinstance(data, Table)'
    assert [*_in_code(ast.parse(other))] == []


def _questions() -> Iterator[str]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(tuple(f"lakeformat/{each}/" for each in (*WINGS, "testing"))):
                for question in _in_code(ast.parse(path.read_text(encoding="utf-8"))):
                    yield f"{name}: {question}"


def _in_code(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if _compares_format(node) or _asks_class(node):
            yield ast.unparse(node)


def _compares_format(node: ast.AST) -> bool:
    """Find a comparison of ``format`` with the name of a table format."""
    if not isinstance(node, ast.Compare):
        return False
    if "get('format'" in ast.unparse(node.left):
        return True
    constants = [each for each in ast.walk(node) if isinstance(each, ast.Constant)]
    is_format = ast.unparse(node.left).endswith((".format", "'format')", "['format']"))
    return is_format and not FORMATS.isdisjoint(each.value for each in constants)


def _asks_class(node: ast.AST) -> bool:
    """Find ``isinstance`` with a class of the tables of one format."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"):
        return False
    asked = {ast.unparse(each) for each in ast.walk(node.args[1]) if hasattr(each, "ctx")}
    return not CLASSES.isdisjoint(asked)
