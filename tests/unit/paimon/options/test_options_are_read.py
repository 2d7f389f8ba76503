"""No option is declared, documented and then ignored."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.option import Option

ROOT = Path(__file__).resolve().parents[4]
BY_PREFIX = {"metadata.iceberg.uri", "metadata.iceberg.hive-conf-dir"}
"""Read with all options of their prefix, by ``catalog/publication/client_settings.py``."""
PACKAGES = ("lakeformat", "spark_jobs", "airflow_provider_lake")


def declared() -> dict[str, str]:
    """The attribute of each declared option, and its key."""
    return {
        name: value.key
        for owner in TableOptions.__mro__
        for name, value in vars(owner).items()
        if isinstance(value, Option)
    }


def attributes_of_options(names: Collection[str]) -> Iterator[str]:
    """Those of the attributes that the code takes of something that is called options."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            of_options = "options" in path.parts
            text = path.read_text(encoding="utf-8")
            if not of_options and "option" not in text.lower():
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Attribute) and node.attr in names:
                    holder = ast.unparse(node.value)
                    if "option" in holder.lower() or (of_options and holder == "self"):
                        yield node.attr


def test_every_declared_option_is_read_somewhere():
    read = set(attributes_of_options(declared()))
    unread = {key for name, key in declared().items() if name not in read}
    assert unread == BY_PREFIX, "declare them as other engines', or do what they say"
