"""Imports run one way, from what users hold down to errors; see ARCHITECTURE.md for the map."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = "tests/unit/test_import_direction.py"

# A package imports only packages that stand after it.
PACKAGES = ("dags", "airflow_provider_lake", "spark_jobs", "lakeformat")

# What a package must never know, however it is installed.
STRANGERS = {"lakeformat": {"airflow", "pyspark"}, "spark_jobs": {"airflow"}}

# Inside lakeformat a module imports only from the steps below its own.
STEPS: tuple[set[str], ...] = (
    {"cli"},
    {"transfer"},
    {"catalog"},
    {"table"},
    {"maintain"},
    {"analyze", "file_indexes", "partitions", "row_changes"},
    {"live_keys"},
    {"health"},
    {"compact", "expire"},
    {"orphans"},
    {"rollback"},
    {"branches"},
    {"tags"},
    {"consumers", "staged"},
    {"clean"},
    {"system_tables"},
    {"commit", "read", "write"},
    {"expired_meanwhile"},
    {"file_places"},
    {"handle"},
    {"merge"},
    {"datafile"},
    {"index"},
    {"partition_filter"},
    {"metadata"},
    {"partition", "key_order"},
    {"doctor"},
    {"sql"},
    {"storage", "layout"},
    {"schema_changes"},
    {"aggregate_rules"},
    {"bucketing", "key_order"},
    {"schema"},
    {"value_text"},
    {"casts"},
    {"binary_row"},
    {"arrow_types", "options"},
    {"type_text", "type_rules", "file_index_types"},
    {"types"},
    {
        "byte_size",
        "changelog_packs",
        "count_text",
        "duration_text",
        "java_numbers",
        "java_zones",
        "text_files",
    },
    {"table_by_table", "executor"},
    {"errors", "environment"},
)

# The suites that other people run against their own storages: outside the steps.
TESTING_MAY_USE = {"storage", "errors", "environment"}

PUBLIC_API = "the public API"


@dataclass(frozen=True, slots=True)
class Edge:
    """One import statement of one of our modules."""

    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def read_edges(root: Path) -> Iterator[Edge]:
    """Every import of our packages, those under TYPE_CHECKING and inside functions too."""
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            yield from read_file_edges(root, file)


def read_file_edges(root: Path, file: Path) -> Iterator[Edge]:
    path = file.relative_to(root).with_suffix("")
    importer = ".".join(path.parts[:-1] if path.name == "__init__" else path.parts)
    package = list(path.parts[:-1])
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Edge(importer, name.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            up = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*up, *([node.module] if node.module else [])])
            for name in node.names:
                inner = f"{source}.{name.name}"
                yield Edge(importer, inner if is_module(root, inner) else source, node.lineno)


def is_module(root: Path, name: str) -> bool:
    place = root.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").exists()


def objection(edge: Edge) -> str | None:
    """Why an import is against the direction; None when it is fine."""
    ours, theirs = edge.importer.split(".")[0], edge.imported.split(".")[0]
    if theirs in STRANGERS.get(ours, ()):
        return f"{ours} must not know {theirs}"
    if theirs not in PACKAGES:
        return None
    if ours == theirs == "lakeformat":
        return objection_inside(part_of(edge.importer), part_of(edge.imported))
    if PACKAGES.index(theirs) < PACKAGES.index(ours):
        return f"{theirs} stands above {ours}"
    return None


def objection_inside(ours: str, theirs: str) -> str | None:
    """The same for two parts of lakeformat."""
    if ours == theirs or ours in ("cli", PUBLIC_API):
        return None
    if ours == "testing":
        allowed = theirs in TESTING_MAY_USE | {PUBLIC_API}
        return None if allowed else "testing/ uses the public API and storage"
    if theirs == PUBLIC_API:
        return "only the command line and testing/ go through the public API"
    if theirs == "testing":
        return "testing/ is for tests"
    above, below = step_of(ours), step_of(theirs)
    if above < below:
        return None
    return f"{theirs} " + ("shares a step with" if above == below else "stands above") + f" {ours}"


def part_of(module: str) -> str:
    """The package or module directly inside lakeformat; the root is the public API."""
    return module.split(".")[1] if "." in module else PUBLIC_API


def step_of(part: str) -> int:
    for number, parts in enumerate(STEPS):
        if part in parts:
            return number
    pytest.fail(f"lakeformat/{part} has no place yet: add it to STEPS in {HERE}")


def existing_parts(root: Path) -> set[str]:
    """Everything directly inside lakeformat that holds code."""
    inside = (root / "lakeformat").iterdir()
    return {
        path.stem
        for path in inside
        if (path.suffix == ".py" and path.stem != "__init__")
        or (path.is_dir() and any(path.rglob("*.py")))
    }


def complaints(root: Path) -> list[str]:
    edges = read_edges(root)
    return [f"{edge}: {reason}" for edge in edges if (reason := objection(edge)) is not None]


def write_tree(root: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def test_every_import_points_down():
    found = complaints(ROOT)
    assert not found, "imports against the direction:\n  " + "\n  ".join(found)


def test_every_part_of_lakeformat_has_its_place():
    for part in sorted(existing_parts(ROOT) - {"testing"}):
        assert step_of(part) < len(STEPS)


def test_no_module_imports_itself_through_others():
    graph: dict[str, set[str]] = {}
    for edge in read_edges(ROOT):
        is_ours = edge.imported.split(".")[0] in PACKAGES
        # A package's __init__ collects its modules; they do not need it to be loaded first.
        if is_ours and not (ROOT / edge.importer.replace(".", "/")).is_dir():
            graph.setdefault(edge.importer, set()).add(edge.imported)
    assert find_cycle(graph) is None


def find_cycle(graph: Mapping[str, set[str]]) -> str | None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " > ".join(reversed(error.args[1]))
    return None


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("storage/local.py", "from lakeformat.commit import publish", "stands above"),
        ("storage/local.py", "from lakeformat import commit", "stands above"),
        ("storage/local.py", "from ..commit import publish", "stands above"),
        ("read/scan.py", "import lakeformat.write.batches", "shares a step"),
        ("read/scan.py", "import lakeformat", "public API"),
        ("errors.py", "def f():\n    from lakeformat.types import T", "stands above"),
        ("table.py", "if TYPE_CHECKING:\n    from lakeformat.catalog import C", "stands above"),
        ("table.py", "from pyspark.sql import SparkSession", "must not know pyspark"),
        ("table.py", "import spark_jobs.compact", "stands above"),
        ("table.py", "from lakeformat.testing import crashable", "for tests"),
        ("testing/suite.py", "from lakeformat.metadata import snapshot", "public API and storage"),
    ],
)
def test_a_wrong_import_is_named_with_its_place_and_reason(tmp_path, file, content, reason):
    write_tree(tmp_path, {"lakeformat/commit/publish.py": "", f"lakeformat/{file}": content})
    (complaint,) = complaints(tmp_path)
    module = file.removesuffix(".py").replace("/", ".")
    assert complaint.startswith(f"lakeformat.{module}:")
    assert reason in complaint


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("lakeformat/catalog/base.py", "from lakeformat.table import Table"),
        ("lakeformat/cli/compact.py", "import lakeformat\nfrom lakeformat.compaction import pick"),
        ("lakeformat/__init__.py", "from lakeformat.catalog import Catalog"),
        ("lakeformat/testing/suite.py", "import lakeformat\nimport lakeformat.storage.memory"),
        ("lakeformat/commit/publish.py", "from . import attempt\nfrom ..errors import LakeError"),
        ("airflow_provider_lake/hook.py", "import airflow\nimport lakeformat"),
        ("dags/example.py", "from airflow_provider_lake import hook"),
    ],
)
def test_an_import_that_points_down_is_fine(tmp_path, file, content):
    write_tree(tmp_path, {file: content})
    assert complaints(tmp_path) == []


def test_a_new_part_is_told_where_to_add_itself(tmp_path):
    write_tree(tmp_path, {"lakeformat/table.py": "from lakeformat.novelty import x"})
    with pytest.raises(pytest.fail.Exception, match=f"lakeformat/novelty .* STEPS in {HERE}"):
        complaints(tmp_path)


# Where an address becomes a storage and a path: the walls, and comparisons of what a caller gave.
RESOLVERS = {
    "storage/walls.py",
    "catalog/sql/places.py",  # where a database lies, as the SQL database says
    "staged/table_staged.py",  # compares an address the caller gave
    "transfer/migrate_plan.py",  # compares a path the caller gave
}


def test_no_address_from_metadata_becomes_a_place_except_through_the_walls():
    found = set()
    for path in (ROOT / "lakeformat").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "resolve":
                found.add(path.relative_to(ROOT / "lakeformat").as_posix())
    assert found == RESOLVERS
