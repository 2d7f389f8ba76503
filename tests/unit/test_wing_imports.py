"""Jobs, commands and the provider import few modules of the wings.

ARCHITECTURE.md lists them. Take a module out of its table when its last importer uses a method of
``Table``, a public name or a shared room instead.
"""

from __future__ import annotations

import re

from tests.unit.test_import_direction import PAGE, our_edges

IMPORTERS = ("airflow_provider_lake", "dags", "lakeformat.cli", "spark_jobs")
WINGS = ("iceberg", "mixed", "paimon", "publish")
MOST = 20


def read_allowed(page: str) -> set[str]:
    """The modules in the table of those that may be imported from outside of the wings."""
    [table] = re.findall(r"^\| imported from a wing \|.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    cells = [row.split("|")[1] for row in table.splitlines()]
    names = [name for cell in cells for name in re.findall(r"`([^`]+)\.py`", cell)]
    return {name.replace("/", ".") for name in names}


ALLOWED = read_allowed(PAGE.read_text(encoding="utf-8"))


def imports_of_wings() -> dict[str, str]:
    inside = tuple(f"lakeformat.{wing}." for wing in WINGS)
    return {
        edge.imported.removeprefix("lakeformat."): str(edge)
        for edge in our_edges()
        if edge.importer.startswith(IMPORTERS) and edge.imported.startswith(inside)
    }


def test_no_further_module_of_a_wing_is_imported_from_above():
    found = imports_of_wings()
    further = [found[name] for name in sorted(found.keys() - ALLOWED)]
    assert not further, (
        "use a method of Table, a name of lakeformat or a shared room instead:\n"
        + "\n".join(further)
    )


def test_every_listed_module_is_still_imported():
    assert sorted(ALLOWED - imports_of_wings().keys()) == []


def test_the_list_stays_short():
    assert 0 < len(ALLOWED) <= MOST
