"""Programs that only look do not wait for Arrow: names and commands load what they need."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lakeformat as lake
from lakeformat.cli.metadata_commands import METADATA_COMMANDS
from lakeformat.paimon.system_tables import find_system_table


def loaded_after(code: str) -> set[str]:
    """The modules a fresh Python has loaded after some code."""
    told = f"import sys\ntry:\n    {code}\nfinally:\n    print('\\n', *sys.modules)"
    shown = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True)
    assert not shown.stderr
    return set(shown.stdout.splitlines()[-1].split())


def command(*words: str) -> str:
    return f"import lakeformat.cli; sys.argv[1:] = {words!r}; lakeformat.cli.main()"


@pytest.mark.parametrize("code", ["import lakeformat", command("--help"), command("--version")])
def test_arrow_is_not_loaded_to_look_around(code):
    assert not loaded_after(code) & {"pyarrow", "numpy", "pandas", "fastavro"}


def test_no_command_loads_pandas(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT")])
    loaded = loaded_after(command("files", "shop.orders", "-w", str(tmp_path)))
    assert "pyarrow" in loaded
    assert "pandas" not in loaded


@pytest.mark.parametrize("rows", [3, 200_000], ids=["few rows", "many rows"])
def test_an_append_loads_neither_pandas_nor_other_operations(tmp_path, rows):
    file = tmp_path / "orders.csv"
    file.write_text("id,note\n" + "".join(f"{n},{n % 7}x\n" for n in range(rows)))
    lake.open_catalog(str(tmp_path)).create_database("shop")
    lake.open_catalog(str(tmp_path)).create_table(
        "shop.orders", [("id", "BIGINT"), ("note", "STRING")]
    )
    loaded = loaded_after(
        "import lakeformat, pyarrow.csv; "
        f"table = lakeformat.open_catalog({str(tmp_path)!r}).table('shop.orders'); "
        f"table.write(pyarrow.csv.read_csv({str(file)!r}))"
    )
    assert "lakeformat.paimon.write.table_writer" in loaded
    assert not loaded & {
        "pandas",
        "lakeformat.paimon.compact.compact",
        "lakeformat.paimon.merge.functions.registry",
        "lakeformat.files.orc.writer",
    }


def test_type_checkers_are_told_the_same_places_as_python():
    [block] = [
        node
        for node in ast.parse(Path(lake.__file__).read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    told = {
        name.name: node.module.removeprefix("lakeformat.")
        for node in block.body
        for name in node.names
    }
    assert told == lake._MODULE_OF


def test_public_names_are_listed_and_others_are_no_attributes():
    assert set(lake.__all__) <= set(dir(lake))
    with pytest.raises(AttributeError, match="module 'lakeformat' has no attribute 'nix'"):
        lake.nix  # noqa: B018


@pytest.mark.parametrize("command", METADATA_COMMANDS, ids=lambda command: command.name)
def test_a_metadata_command_takes_a_snapshot_where_its_system_table_does(command):
    assert find_system_table(command.table_name).of_snapshot == command.of_snapshot
    assert command.meaning.endswith(".")
