"""Imports run one way, from what users hold down to errors, as ARCHITECTURE.md declares it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.statements import statements

ROOT = Path(__file__).resolve().parents[2]


def read_steps(page: str) -> dict[str, list[set[str]]]:
    """The rows of each table of packages by the folder it describes; ``""`` is the repository."""
    tables: dict[str, list[set[str]]] = {}
    folder, rows = "", None
    for line in page.splitlines():
        if inside := re.match(r"Inside `(lakeformat/[a-z/]*)`", line):
            folder = inside[1]
        if line.startswith("| package |"):
            rows = tables.setdefault(folder, [])
        elif rows is not None and line.startswith("| `"):
            names = re.findall(r"`([^`]+)`", line.split("|")[1])
            rows.append({(folder + name).removesuffix("/").removesuffix(".py") for name in names})
        elif not line.startswith("|"):
            rows = None
    return tables


def flatten(tables: dict[str, list[set[str]]], folder: str) -> list[set[str]]:
    """The steps inside a folder from its top: where a row has a table of its own, its rows."""
    steps: list[set[str]] = []
    for row in tables[folder]:
        inner = next((f"{name}/" for name in row if f"{name}/" in tables), None)
        steps += flatten(tables, inner) if inner else [row]
    return steps


PAGE = ROOT / "ARCHITECTURE.md"
TABLES = read_steps(PAGE.read_text(encoding="utf-8"))

# A package imports only packages that stand after it.
PACKAGES = tuple(name for row in TABLES[""] for name in row)

# What a package must never know, however it is installed.
STRANGERS = {"lakeformat": {"airflow", "pyspark"}, "spark_jobs": {"airflow"}}

# Inside lakeformat a module imports only from the steps below its own.
STEPS = [
    {name.removeprefix("lakeformat/").replace("/", ".") for name in row}
    for row in flatten(TABLES, "lakeformat/")
]

# The suites that other people run against their own storages: outside the steps.
TESTING_MAY_USE = {"storage", "errors", "environment"}

PUBLIC_API = "the public API"

# Wings with steps of their own; their doors hold no code.
WINGS = {folder.strip("/").replace("/", ".") for folder in TABLES}


@dataclass(frozen=True, slots=True)
class Edge:
    """One import statement of one of our modules."""

    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


@cache
def our_edges() -> tuple[Edge, ...]:
    """Read the imports of this repository once, for all tests of a process."""
    return tuple(read_edges(ROOT))


def read_edges(root: Path) -> Iterator[Edge]:
    """Every import of our packages, those under TYPE_CHECKING and inside functions too."""
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            yield from read_file_edges(root, file)


def read_file_edges(root: Path, file: Path) -> Iterator[Edge]:
    path = file.relative_to(root).with_suffix("")
    importer = ".".join(path.parts[:-1] if path.name == "__init__" else path.parts)
    package = list(path.parts[:-1])
    for node in statements(ast.parse(file.read_text(encoding="utf-8"))):
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
    """Return the reason why an import is against the direction; None if it is allowed."""
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


@cache
def part_of(module: str) -> str:
    """The innermost package or module with a step of its own; the root is the public API."""
    words = module.split(".")[1:]
    if not words:
        return PUBLIC_API
    for length in range(len(words), 0, -1):
        part = ".".join(words[:length])
        if any(part in parts for parts in STEPS):
            return part
    return words[0] if words[0] == "testing" else ".".join(words[:2])


@cache
def step_of(part: str) -> int:
    for number, parts in enumerate(STEPS):
        if part in parts:
            return number
    place = part.replace(".", "/")
    pytest.fail(f"lakeformat/{place} has no place yet: add it to a table of ARCHITECTURE.md")


def existing_parts(root: Path) -> set[str]:
    """The part of every module inside lakeformat but the doors of wings."""
    files = (root / "lakeformat").rglob("*.py")
    names = {file.relative_to(root).with_suffix("").as_posix() for file in files}
    modules = {name.removesuffix("/__init__").replace("/", ".") for name in names}
    return {part_of(module) for module in modules - WINGS} - {PUBLIC_API}


def complaints(edges: Iterable[Edge]) -> list[str]:
    found = ((edge, objection(edge)) for edge in edges)
    return [f"{edge}: {reason}" for edge, reason in found if reason]


def write_tree(root: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def test_every_import_points_down():
    found = complaints(our_edges())
    assert not found, "imports against the direction:\n  " + "\n  ".join(found)


def test_every_part_of_lakeformat_has_its_place():
    for part in sorted(existing_parts(ROOT) - {"testing"}):
        assert step_of(part) < len(STEPS)


def test_every_place_is_of_something_that_is_there():
    assert set().union(*STEPS) == existing_parts(ROOT) - {"testing"}


def test_no_module_imports_itself_through_others():
    graph: dict[str, set[str]] = {}
    for edge in our_edges():
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
        ("storage/local.py", "from lakeformat.paimon.commit import publish", "stands above"),
        ("storage/local.py", "from lakeformat.paimon import commit", "stands above"),
        ("storage/local.py", "from ..paimon.commit import publish", "stands above"),
        ("paimon/read/scan.py", "import lakeformat.paimon.write.assign", "shares a step"),
        ("paimon/read/scan.py", "import lakeformat", "public API"),
        ("rows/keys.py", "from lakeformat.paimon import schema", "stands above"),
        ("types/types.py", "from lakeformat.types import casts", "stands above"),
        ("storage/base.py", "from lakeformat.storage import sql", "stands above"),
        ("errors.py", "def f():\n    from lakeformat.types.types import T", "stands above"),
        ("paimon/layout.py", "if TYPE_CHECKING:\n    import lakeformat.catalog", "stands above"),
        ("doctor.py", "from pyspark.sql import SparkSession", "must not know pyspark"),
        ("doctor.py", "import spark_jobs.compact", "stands above"),
        ("doctor.py", "from lakeformat.testing import crashable", "for tests"),
        ("testing/suite.py", "import lakeformat.paimon.schema", "public API and storage"),
    ],
)
def test_a_wrong_import_is_named_with_its_place_and_reason(tmp_path, file, content, reason):
    there = dict.fromkeys(("paimon/commit/publish.py", "paimon/schema.py"), "")
    there |= dict.fromkeys(("types/casts/cast.py", "storage/sql/lock.py"), "")
    write_tree(tmp_path, {f"lakeformat/{name}": text for name, text in there.items()})
    write_tree(tmp_path, {f"lakeformat/{file}": content})
    (complaint,) = complaints(read_edges(tmp_path))
    module = file.removesuffix(".py").replace("/", ".")
    assert complaint.startswith(f"lakeformat.{module}:")
    assert reason in complaint


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("lakeformat/catalog/base.py", "from lakeformat.paimon.table import Table"),
        ("lakeformat/cli/compact.py", "import lakeformat\nfrom lakeformat.paimon import read"),
        ("lakeformat/__init__.py", "from lakeformat.catalog import Catalog"),
        ("lakeformat/testing/suite.py", "import lakeformat\nimport lakeformat.storage.memory"),
        ("lakeformat/paimon/commit/a.py", "from . import b\nfrom ...errors import LakeError"),
        ("airflow_provider_lake/hook.py", "import airflow\nimport lakeformat"),
        ("dags/example.py", "from airflow_provider_lake import hook"),
    ],
)
def test_an_import_that_points_down_is_fine(tmp_path, file, content):
    write_tree(tmp_path, {file: content})
    assert complaints(read_edges(tmp_path)) == []


def test_a_new_part_is_told_where_to_add_itself(tmp_path):
    write_tree(tmp_path, {"lakeformat/cli/a.py": "import lakeformat.paimon.novelty"})
    assert complaints(read_edges(tmp_path)) == []  # the command line may import anything
    write_tree(tmp_path, {"lakeformat/doctor.py": "import lakeformat.paimon.novelty"})
    with pytest.raises(
        pytest.fail.Exception, match=r"lakeformat/paimon/novelty .* ARCHITECTURE\.md"
    ):
        complaints(read_edges(tmp_path))


# Where an address becomes a storage and a path: the walls, and comparisons of what a caller gave.
RESOLVERS = {
    "storage/walls.py",
    "catalog/sql/places.py",  # where a database lies, as the SQL database says
    "tables/staged/table_staged.py",  # compares an address the caller gave
    "catalog/transfer/migrate_plan.py",  # compares a path the caller gave
}


def test_no_address_from_metadata_becomes_a_place_except_through_the_walls():
    found = set()
    for path in (ROOT / "lakeformat").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "resolve" in text else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "resolve":
                found.add(path.relative_to(ROOT / "lakeformat").as_posix())
    assert found == RESOLVERS
