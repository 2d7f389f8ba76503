"""What bin/test can run: the gate and one group of tests per folder of tests/."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

DESCRIPTION = """\
Runs the gate and the tests, and ends with one summary.

Without a group it runs all of them, in this order:

{groups}

Words after -- go to pytest:  bin/test unit -- -k snapshot -x
Exit code: 0 all passed, 1 something failed, 2 this machine cannot run it (one line says why)."""


@dataclass(frozen=True, slots=True)
class Group:
    """One word a person can give to bin/test."""

    name: str
    sentence: str
    is_parallel: bool = False
    """Whether its tests are independent and slow enough to gain from several processes."""


GATE = Group("gate", "Formatting, lint, strict types and structure.")
INTEROP = Group("interop", "pypaimon reads what we write, and the reverse.")
GROUPS = (
    GATE,
    Group("unit", "One module at a time, in seconds: no Java, network or Docker."),
    Group("conformance", "Every implementation keeps one set of promises.", is_parallel=True),
    Group("crash", "Power cuts and faults at each storage call.", is_parallel=True),
    INTEROP,
    Group("spark", "Jobs on a local Spark (about 10 s to start)."),
    Group("airflow", "Operators, triggers and DAGs on a local Airflow."),
)


@dataclass(frozen=True, slots=True)
class Request:
    """What one call of bin/test asks for."""

    groups: tuple[Group, ...]
    options: tuple[str, ...]
    """Words for pytest, without the tests they may name."""
    tests: tuple[str, ...]
    """Single files or tests: ``tests/unit/test_x.py::test_y``; none means the whole groups."""

    def targets(self, group: Group) -> list[str]:
        """What pytest is asked to run for one group."""
        folder = f"tests/{group.name}"
        if not self.tests:
            return [folder]
        return [word for word in self.tests if word == folder or word.startswith(f"{folder}/")]


def parse_request(arguments: Sequence[str]) -> Request:
    """Read the command line; prints help or a usage line and exits where that is the answer."""
    words = list(arguments)
    cut = words.index("--") if "--" in words else len(words)
    wanted = make_parser().parse_args(words[:cut]).group
    rest = words[cut + 1 :]
    request = Request(
        tuple(group for group in GROUPS if not wanted or group.name in wanted),
        tuple(word for word in rest if not word.startswith("tests/")),
        tuple(word for word in rest if word.startswith("tests/")),
    )
    if not request.tests:
        return request
    return replace(request, groups=tuple(g for g in request.groups if request.targets(g)))


def make_parser() -> argparse.ArgumentParser:
    """The words that may stand before --."""
    parser = argparse.ArgumentParser(
        prog="bin/test",
        usage="bin/test [group ...] [-- pytest options]",
        description=DESCRIPTION.format(
            groups="\n".join(f"  {group.name:<12} {group.sentence}" for group in GROUPS)
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    parser.add_argument("group", nargs="*", type=group_name, help=argparse.SUPPRESS)
    parser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
    return parser


def group_name(word: str) -> str:
    """One of the groups' names, else a line that lists them."""
    names = [group.name for group in GROUPS]
    if word not in names:
        raise argparse.ArgumentTypeError(f"{word!r} is no group: choose from {', '.join(names)}")
    return word


def has_tests(root: Path, group: Group) -> bool:
    """Whether the group exists today: a folder with a test in it."""
    return any((root / "tests" / group.name).rglob("test_*.py"))
