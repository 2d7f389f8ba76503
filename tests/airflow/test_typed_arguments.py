"""Editors and type checkers know every argument of operators, sensors and decorators."""

import inspect
import os
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Unpack, get_args, get_origin, get_type_hints

import airflow.sdk
import pytest
from airflow.sdk import DAG, BaseOperator, Context, TaskGroup
from jinja2 import StrictUndefined
from packaging.version import Version

import airflow_provider_lake.decorators
import airflow_provider_lake.maintenance
import airflow_provider_lake.operators
import airflow_provider_lake.sensors
from airflow_provider_lake.arguments.declared import argument_names
from airflow_provider_lake.arguments.task_arguments import (
    DagArguments,
    FunctionArguments,
    TaskArguments,
    TaskGroupArguments,
)
from airflow_provider_lake.decorators.function import LakeFunctionOperator
from airflow_provider_lake.decorators.lake_commit import (
    CommitFunctionArguments,
    LakeCommitDecoratedOperator,
    lake_commit_task,
)
from airflow_provider_lake.decorators.lake_job import LakeJobDecoratedOperator, lake_job_task
from airflow_provider_lake.jobs.job import own_keys
from airflow_provider_lake.maintenance.dags import lake_dags
from tests.airflow.versions import AIRFLOW

ROOT = Path(__file__).parents[2]
NAMES = {
    "Context": Context,
    "DAG": DAG,
    "RetryPolicy": getattr(airflow.sdk, "RetryPolicy", Any),
    "StrictUndefined": StrictUndefined,
    "TaskGroup": TaskGroup,
}
"""The names that the declarations import for type checkers only."""
ADDED = {
    TaskArguments: {"retry_policy": "3.3", "render_template_as_native_obj": "3.2"},
    TaskGroupArguments: {"doc_md": "3.3"},
    DagArguments: {"allowed_run_types": "3.2", "rerun_with_latest_version": "3.3"},
}
"""The version that added an argument, unless it was 3.1 or older."""
MISTAKES = Path(__file__).parent / "mistaken_dag.py"
DECLARING = ("airflow.sdk.*", "airflow_provider_lake.*", "spark_jobs.job_requests.*")
"""The modules that declare what a DAG file uses. To follow more takes mypy ten times as long."""
PACKAGES = (
    airflow_provider_lake.decorators,
    airflow_provider_lake.maintenance,
    airflow_provider_lake.operators,
    airflow_provider_lake.sensors,
)


def constructed():
    """Return every class of the four packages that a DAG file constructs, and their bases."""
    modules = [
        import_module(f"{package.__name__}.{each.name}")
        for package in PACKAGES
        for each in pkgutil.iter_modules(package.__path__)
    ]
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type)
        and kind.__module__ == module.__name__
        and issubclass(kind, BaseOperator | TaskGroup)
    ]


CLASSES = constructed()
OPERATORS = [each for each in CLASSES if issubclass(each, BaseOperator)]
FUNCTIONS = [each for each in CLASSES if issubclass(each, LakeFunctionOperator)]


def constructors(kind):
    """Return the constructors of a class, its own first, each with its class."""
    return [(each, vars(each)["__init__"]) for each in kind.__mro__ if "__init__" in vars(each)]


def further(constructor):
    """Return the class of the arguments that a constructor takes besides those it names."""
    hints = get_type_hints(inspect.unwrap(constructor), include_extras=True)
    [found] = [hint for hint in hints.values() if get_origin(hint) is Unpack]
    return get_args(found)[0]


def existing(declared):
    """Return the names of the arguments that the installed Airflow knows."""
    later = ADDED.get(declared, ADDED[TaskArguments])
    return {*declared.__annotations__} - {
        name for name, first in later.items() if Version(first) > AIRFLOW
    }


def is_ours(kind):
    return kind.__module__.startswith("airflow_provider_lake")


def test_all_of_them_are_looked_at():
    assert len(CLASSES) == 18 + 2 + 6 + 1 + 2 + 1 + 1


@pytest.mark.parametrize("kind", OPERATORS)
def test_a_class_knows_all_arguments_of_its_bases(kind):
    [(_, own), *bases] = constructors(kind)
    theirs = {name for _, each in bases for name in argument_names(each)}

    assert existing(further(own)) == theirs - {*argument_names(own)}


@pytest.mark.parametrize("kind", CLASSES)
def test_a_shared_argument_has_the_type_of_the_constructor_that_takes_it(kind):
    [(_, own), *bases] = constructors(kind)
    declared = get_type_hints(further(own), None, NAMES)
    taken = {
        name: hint
        for each, constructor in reversed(bases)
        if is_ours(each)
        for name, hint in get_type_hints(inspect.unwrap(constructor)).items()
        if name in argument_names(constructor)
    }

    assert {name: declared[name] for name in taken if name in declared} == {
        name: hint for name, hint in taken.items() if name in declared
    }


@pytest.mark.parametrize("kind", [each for each in CLASSES if "request" in vars(each)])
def test_an_argument_has_the_type_and_the_default_of_the_key_of_the_job(kind):
    keys = get_type_hints(kind.request)
    hints = get_type_hints(inspect.unwrap(kind.__init__))
    defaults = inspect.signature(inspect.unwrap(kind.__init__)).parameters

    for key in own_keys(kind.request):
        argument = "bucket_executor" if key == "executor" else key
        default = kind.request.__dataclass_fields__[key].default
        if argument in hints:
            assert (argument, hints[argument]) == (argument, keys[key])
            if hasattr(kind.request, key):
                assert (argument, defaults[argument].default) == (argument, default)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_argument_is_documented_by_the_class_that_names_it(kind):
    documented = re.findall(r":param (\w+):", kind.__doc__)

    assert {*argument_names(constructors(kind)[0][1])} == {*documented}


@pytest.mark.parametrize(
    ("decorator", "operator", "declared"),
    [
        (lake_job_task, LakeJobDecoratedOperator, FunctionArguments),
        (lake_commit_task, LakeCommitDecoratedOperator, CommitFunctionArguments),
    ],
)
def test_a_decorator_knows_the_arguments_of_its_operator(decorator, operator, declared):
    """All but those of the call, which Airflow passes."""
    named = {name for _, each in constructors(operator) for name in argument_names(each)}
    of_call = {"python_callable", "op_args", "op_kwargs", "kwargs_to_upstream"}

    assert further(decorator) is declared
    assert existing(declared) == named - of_call - {"multiple_outputs"}
    types, taken = get_type_hints(declared, None, NAMES), operator._argument_types()
    assert {name: types[name] for name in taken} == taken


def test_a_group_of_tasks_and_a_policy_know_what_airflow_takes():
    """All but what they pass themselves, and what Airflow ignores or calls internal."""
    group = {*inspect.signature(TaskGroup).parameters} - {"group_id"}
    own = {"dag_id", "schedule", "doc_md", "task_group", "sla_miss_callback"}

    assert existing(TaskGroupArguments) == group
    assert further(lake_dags) is DagArguments
    assert existing(DagArguments) == {*inspect.signature(DAG).parameters} - own


@pytest.mark.parametrize("kind", [each for each in OPERATORS if each not in FUNCTIONS])
def test_the_signature_of_an_operator_names_all_its_arguments(kind):
    """For ``help`` and notebooks, which read the running program."""
    signature = inspect.signature(kind)

    assert {*signature.parameters} == {
        name for _, each in constructors(kind) for name in argument_names(each)
    }
    assert "kwargs" not in signature.parameters


def test_mypy_answers_a_mistake_in_a_dag_where_it_is_made(tmp_path):
    """Above each mistake stands its message; the other lines are right."""
    config = tmp_path / "pyproject.toml"
    followed = f'module = [{", ".join(map(repr, DECLARING))}]\nfollow_imports = "normal"\n'
    whole = (ROOT / "pyproject.toml").read_text()
    config.write_text(f"{whole}\n[[tool.mypy.overrides]]\n{followed}")
    expected = [
        f"{number}: {line.strip().removeprefix('# error: ')}"
        for number, line in enumerate(MISTAKES.read_text().splitlines(), 2)
        if line.strip().startswith("# error: ")
    ]
    assert len(expected) == 12

    options = [f"--config-file={config}", "--follow-imports=skip", f"--cache-dir={os.devnull}"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(MISTAKES.relative_to(ROOT))],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    found = re.findall(r"^\S+:(\d+): error: (.*?)  \[", checked.stdout, re.MULTILINE)
    assert [f"{number}: {message}" for number, message in found] == expected
