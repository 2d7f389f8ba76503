"""Only a wing knows what a snapshot number means: nothing outside counts or orders them."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OUTSIDE = ("spark_jobs", "airflow_provider_lake", "dags", "lakeformat/cli", "lakeformat/catalog")
NUMBER = re.compile(r"(\w*_)?snapshot(_id)?|number_of_snapshot|following")
ONE_OFF = re.compile(r"last|number")
"""Names that often hold a snapshot number: adding 1 to them, or subtracting it, is suspicious."""
OF_SNAPSHOT = re.compile(r"(\w*_)?(snapshot|head|newest|latest|before|told|newer)(\[[^]]*\])?")


def is_number(node: ast.expr) -> bool:
    """Return True for ``x.snapshot_id``, ``head.id``, ``after_snapshot``, ``position.number``."""
    match node:
        case ast.Name(id=name):
            return bool(NUMBER.fullmatch(name))
        case ast.Attribute(value=value, attr="id"):
            return bool(OF_SNAPSHOT.fullmatch(ast.unparse(value)))
        case ast.Attribute(attr=name):
            return bool(NUMBER.fullmatch(name)) or (
                name == "numbers" and "position" in ast.unparse(node)
            )
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return bool(NUMBER.fullmatch(name))
        case ast.Call(func=ast.Name(id="int"), args=[inner]):
            return is_number(inner)
    return False


def is_neighbour(node: ast.AST) -> bool:
    """Return True for ``last - 1`` and ``number + 1``."""
    match node:
        case ast.BinOp(left=ast.Name(id=name), right=ast.Constant(value=1)):
            return bool(ONE_OFF.fullmatch(name))
    return False


def found_in(source: str) -> list[int]:
    """Lines that add to, subtract from or order a snapshot number."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                parts = [left, right]
            case ast.Compare(left=left, ops=ops, comparators=[*rest]) if any(
                isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in ops
            ):
                parts = [left, *rest]
            case ast.Call(func=ast.Name(id="range" | "min" | "max"), args=[*parts]):
                pass
            case _:
                continue
        if any(is_number(part) for part in parts) or is_neighbour(node):
            lines.append(node.lineno)
    return lines


def test_no_module_outside_the_wings_counts_with_snapshot_numbers():
    complaints = [
        f"{file.relative_to(ROOT)}:{line}"
        for folder in OUTSIDE
        for file in sorted((ROOT / folder).rglob("*.py"))
        for line in found_in(file.read_text(encoding="utf-8"))
    ]
    assert not complaints, (
        "arithmetic on snapshot numbers: use Position, table.since, table.positions or "
        f"position.before instead: {', '.join(complaints)}"
    )


@pytest.mark.parametrize(
    "source",
    [
        "after = report.snapshot_id - 1",
        "missed = newer[0].id > cursor.snapshot_id + 1",
        "if head.id < after: pass",
        "following = newest.id + 1",
        "range(first, result['snapshot_id'])",
        "int(result['snapshot_id']) + 1",
        "min(snapshot.id, 3)",
        "table.snapshot(number - 1)",
    ],
)
def test_arithmetic_is_found(source):
    assert found_in(source)


@pytest.mark.parametrize("source", ["rows + 1", "snapshot.id == 3", "len(snapshots) > 1"])
def test_everything_else_is_fine(source):
    assert not found_in(source)
