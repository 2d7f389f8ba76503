"""Writes the pages of the Python API.

A page lists the public names. The site adds the signature and the docstring of each name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import lakeformat
import spark_jobs
from airflow_provider_lake.provider_info import get_provider_info

__all__ = ["api_pages"]

_KINDS = ("hooks", "operators", "sensors", "triggers")
_COMMON_ARGUMENTS = "airflow_provider_lake.operators.job.LakeWarehouseJobOperator"
"""The base class of the operators, whose docstring describes the arguments that they share."""
_OTHER_NAMES = (
    "The names are the hooks, operators, sensors, triggers, decorators and notifiers of the",
    "provider. The operators share the arguments of the base class `LakeWarehouseJobOperator`.",
    "[Templates](../templates.md) and [assets](../assets.md) describe other names of the provider,",
    "such as `lake_dags` and `lake_asset`. In a DAG, `lake_job_task` and `lake_commit_task` are",
    "the decorators `@task.lake_job` and `@task.lake_commit`.",
)


def api_pages(generated: str) -> dict[str, str]:
    """Return the pages by their path below docs."""
    return {
        "reference/api.md": _page("lakeformat", generated, _names("lakeformat", lakeformat)),
        "reference/api-spark.md": _page("spark_jobs", generated, _names("spark_jobs", spark_jobs)),
        "reference/api-airflow.md": _page(
            "airflow_provider_lake", generated, [*_of_provider()], _OTHER_NAMES
        ),
    }


def _page(package: str, generated: str, names: Sequence[str], more: Sequence[str] = ()) -> str:
    lines = [f"# The API of `{package}`", "", generated, ""]
    lines += [
        "The documentation site shows each name below with its signature and docstring. To see the",
        "site, run `bin/test site` in a clone of the repository once, then",
        "`.venv-site/bin/mkdocs serve`, which prints the address. Without the site, call `help` in",
        f'Python with a name: `help("{names[0]}")`.',
        *more,
    ]
    lines += [f"\n::: {name}" for name in names]
    return "\n".join(lines) + "\n"


def _names(package: str, module: object) -> list[str]:
    return [f"{package}.{name}" for name in getattr(module, "__all__", ())]


def _of_provider() -> Iterator[str]:
    """Yield the public classes, the decorators and the notifiers that the provider lists."""
    info = get_provider_info()
    for kind in _KINDS:
        if kind == "operators":
            yield _COMMON_ARGUMENTS
        for listed in info[kind]:
            for module in listed["python-modules"]:
                classes = (name for name in _promised(module) if name[0].isupper())
                yield from (f"{module}.{name}" for name in classes if not name.isupper())
    for decorator in info["task-decorators"]:
        yield decorator["class-name"]
    yield from info["notifications"]


def _promised(module: str) -> list[str]:
    """Return the names in ``__all__`` of a module. They are read from the module's file, because
    an import of Airflow is slow.
    """
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    for node in ast.parse(Path(spec.origin).read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []
