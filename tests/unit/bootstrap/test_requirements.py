"""Exactly the imported packages are required and pinned."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Collection, Iterator

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lakeformat.cli.archive import needed_distributions
from lakeformat.doctor import DISTRIBUTION
from tests.statements import statements
from tests.unit.bootstrap.machine import ROOT

OTHER_AIRFLOWS = ("airflow-3.1.txt", "airflow-3.2.txt", "airflow-3.4.txt")
LOCKS = (
    *OTHER_AIRFLOWS,
    "tested.txt",
    "image.txt",
    "pypaimon.txt",
    "readers.txt",
    "site.txt",
    "peers.txt",
    "java.txt",
)
PIN = re.compile(
    r"([a-z0-9-]+)==([\w.]+)( ; [^\\]+)? \\((?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)+)\n"
)


def pins(file: str) -> dict[str, tuple[str, set[str]]]:
    """Each package of a lock file with its version and the hashes of its files."""
    text = (ROOT / "requirements" / file).read_text()
    found = list(PIN.finditer(text))
    assert "".join(match[0] for match in found) == text, f"{file} holds more than pins and hashes"
    assert len({match[1] for match in found}) == len(found), f"{file} pins a package twice"
    return {match[1]: (match[2], set(re.findall(r"[0-9a-f]{64}", match[4]))) for match in found}


@pytest.mark.parametrize("file", LOCKS)
def test_a_lock_holds_versions_with_hashes_and_no_address(file):
    assert pins(file)


def test_the_lock_has_one_spark():
    tested = pins("tested.txt")
    assert tested["pyspark"][0] == tested["pyspark-client"][0]


@pytest.mark.parametrize("file", OTHER_AIRFLOWS)
def test_another_airflow_differs_from_the_tested_set_where_it_must(file):
    tested, other = pins("tested.txt"), pins(file)

    version, _ = other["apache-airflow"]
    assert version.startswith(file.removeprefix("airflow-").removesuffix(".txt"))
    assert other["apache-airflow-core"][0] == version
    assert len(other) < len(tested) / 10
    assert version in (ROOT / "docs" / "compatibility.md").read_text()


def test_the_image_has_the_tested_files():
    tested = pins("tested.txt")
    assert {name: tested.get(name) for name in pins("image.txt")} == pins("image.txt")


def test_the_image_has_what_the_project_requires_there():
    extras = ["airflow", "spark", "s3", "jdbc"]
    found = needed_distributions(DISTRIBUTION, extras)
    needed = {canonicalize_name(each.name) for each in found}
    assert needed - {DISTRIBUTION} <= pins("image.txt").keys()


IMPORT = re.compile(r"^\s*(?:import|from) (\w+)", re.MULTILINE)
"""Has a match for each import of a formatted file, and for some lines of texts."""


def third_party_imports(
    *places: str, everywhere: bool, but: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """Each outside module with the file that imports it; at the top of files, or in them.

    A file that imports no other module than those of ``but`` is left out.
    """
    ours = {path.name for path in ROOT.iterdir()} | {path.stem for path in ROOT.glob("bin/*.py")}
    for file in (file for place in places for file in sorted((ROOT / place).rglob("*.py"))):
        text = file.read_text(encoding="utf-8")
        beside = {path.stem for path in file.parent.glob("*.py")}  # as a DAG file finds them
        known = ours | beside | sys.stdlib_module_names
        if set(IMPORT.findall(text)) <= known | set(but):
            continue
        tree = ast.parse(text)
        for node in statements(tree) if everywhere else tree.body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in {name.split(".")[0] for name in names} - known:
                yield name, str(file.relative_to(ROOT))


def test_what_is_imported_is_pinned_and_not_only_installed_by_hand():
    locks = ("tested.txt", "pypaimon.txt", "peers.txt", "readers.txt")
    pinned = {name for file in locks for name in pins(file)}
    providers = importlib.metadata.packages_distributions() | {
        "pypaimon": ["pypaimon"],
        "pypaimon_rust": ["pypaimon-rust"],
        "deltalake": ["deltalake"],
        "pyiceberg": ["pyiceberg"],
        "lance": ["pylance"],
        "chdb": ["chdb"],
        "datafusion": ["datafusion"],
        "duckdb": ["duckdb"],
        "pyiceberg_core": ["pyiceberg-core"],
    }
    places = ("lakeformat", "spark_jobs", "airflow_provider_lake", "dags", "tests", "benchmarks")
    fine = {
        name
        for name, found in providers.items()
        if not pinned.isdisjoint(map(canonicalize_name, found))
    }
    for name, file in third_party_imports(*places, everywhere=True, but=fine):
        assert name in fine, f"{file} imports {name}: add it to pyproject.toml, then bin/lock"


# Loaded only when somebody asks for what the extra is for.
OF_AN_EXTRA = {
    "lakeformat/storage/sql/": "jdbc",
    "lakeformat/catalog/sql/": "jdbc",
    "lakeformat/catalog/iceberg/": "iceberg",
    "lakeformat/publish/check/pyiceberg_files.py": "iceberg",
}


def test_the_library_requires_what_it_imports_and_nothing_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {canonicalize_name(Requirement(text).name) for text in project["dependencies"]}
    providers = importlib.metadata.packages_distributions()
    imported = set()
    for name, file in third_party_imports("lakeformat", everywhere=False):
        if file.startswith("lakeformat/testing/"):
            continue  # suites for other people's tests, who have pytest
        extra = next((OF_AN_EXTRA[place] for place in OF_AN_EXTRA if file.startswith(place)), None)
        optional = project["optional-dependencies"][extra] if extra else []
        allowed = required | {canonicalize_name(Requirement(text).name) for text in optional}
        found = {canonicalize_name(provider) for provider in providers.get(name, [])} & allowed
        assert found, f"{file} imports {name}, which pyproject.toml does not name for it"
        imported |= found & required
    assert required == imported, f"nothing imports {sorted(required - imported)}"
