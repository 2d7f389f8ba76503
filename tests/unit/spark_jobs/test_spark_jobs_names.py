"""The public names of ``spark_jobs``: listed once, loaded when they are asked for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import spark_jobs


def test_type_checkers_are_told_the_same_places_as_python():
    [block] = [
        node
        for node in ast.parse(Path(spark_jobs.__file__).read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    told = {
        name.name: node.module.removeprefix("spark_jobs.frames.")
        for node in block.body
        for name in node.names
    }

    assert told == spark_jobs._MODULE_OF
    assert sorted(told) == sorted(spark_jobs.__all__)


def test_importing_the_package_loads_neither_spark_nor_arrow():
    code = "import spark_jobs, sys; print({'pyspark', 'pyarrow', 'lakeformat'} & {*sys.modules})"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "set()"


def test_what_is_not_public_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'spark_jobs' has no attribute 'nix'"):
        spark_jobs.nix  # noqa: B018
