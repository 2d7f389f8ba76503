"""The groups of bin/test: the gate, and one group for each folder of tests/."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

DESCRIPTION = """\
Runs the gate and the tests, and ends with one summary.

Without a group it runs all of these, in this order, but spark and airflow in parallel:

{groups}

Only when named:

{opt_in}

Exhaustive tests run a sample that a new seed picks each time. The summary prints the seed:
SEED=7 bin/test repeats the sample of seed 7. bin/test --all runs everything.

Words after -- are passed to pytest:  bin/test unit -- -k snapshot -x
One version of Airflow:       bin/test compat --airflow 3.1
The tests with a real Airflow: bin/test compat --airflow 3.1 -- tests/stack/test_templates.py
Exit code: 0 all passed, 1 something failed, 2 this machine cannot run it (see the last line)."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of tests, with its name on the command line of bin/test."""

    name: str
    sentence: str
    is_parallel: bool = False
    """True if the tests are independent of each other, and slow enough to gain from several
    processes.
    """
    waits: bool = False
    """True if the tests wait so often that they are faster with one process more than the machine
    has CPUs. A group that runs beside other groups gets no extra process.
    """
    is_aside: bool = False
    """True if the group runs at the same time as the remaining groups, because its tests wait for
    programs that they start.
    """
    opt_in: str = ""
    """The requirements beyond those of the project; a group with such requirements runs only when
    named. Empty for any other group.
    """
    tests_of: str = ""
    """The group whose tests this group runs again; empty for a group with its own tests."""
    if_named: tuple[str, ...] = ()
    """Names of other groups, whose tests this group runs if the command line names the tests."""

    @property
    def folder(self) -> str:
        """The folder of the tests below tests/."""
        return self.tests_of or self.name


GATE = Group("gate", "Formatting, lint, strict types and structure.")
INTEROP = Group("interop", "pypaimon reads tables written here, and the reverse.", is_parallel=True)
JAVA = Group(
    "java",
    "The released Java Paimon reads tables written here, and the reverse.",
    opt_in="needs a JDK 17 to 21 and Maven",
)
READERS = Group(
    "readers",
    "DuckDB, Iceberg-Rust, ClickHouse and PyIceberg read Iceberg tables written here.",
    opt_in="installs DuckDB, Iceberg-Rust and ClickHouse",
)
SITE = Group(
    "site",
    "The pages of docs/ build as a site without a warning.",
)
STACK = Group(
    "stack",
    "A whole Airflow: the image's installation, killed tasks, every template, bin/demo.",
    opt_in="takes half an hour and 2 GB of memory",
)
COMPAT = Group(
    "compat",
    "The group airflow again, with each supported version of Airflow.",
    is_parallel=True,
    waits=True,
    opt_in="installs three more versions of Airflow, 1.5 GB each, and takes an hour",
    tests_of="airflow",
    if_named=("stack",),
)
UNIT = Group(
    "unit",
    "Tests of single modules. They take minutes, and need no Java, network or Docker.",
    is_parallel=True,
    waits=True,
)
GROUPS = (
    GATE,
    UNIT,
    Group(
        "conformance",
        "All implementations of an interface pass the same tests.",
        is_parallel=True,
        waits=True,
    ),
    Group("crash", "Power cuts and faults at each storage call.", is_parallel=True, waits=True),
    INTEROP,
    Group(
        "spark",
        "Jobs on a local Spark (about 10 s to start).",
        is_parallel=True,
        waits=True,
        is_aside=True,
    ),
    Group(
        "airflow",
        "Operators, triggers and DAGs on a local Airflow.",
        is_parallel=True,
        waits=True,
        is_aside=True,
    ),
    SITE,
    READERS,
    COMPAT,
    STACK,
    JAVA,
)


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a call of bin/test."""

    groups: tuple[Group, ...]
    options: tuple[str, ...]
    """Options for pytest, without the tests to run."""
    tests: tuple[str, ...]
    """Files or tests, such as ``tests/unit/test_x.py::test_y``; empty for all tests of the
    groups.
    """
    left_out: tuple[Group, ...] = ()
    """The groups that are left out because they run only when named; empty if the command line
    names groups or tests.
    """
    is_whole: bool = False
    """True if the exhaustive tests run all cases, not only a sample."""
    airflow: tuple[str, ...] = ()
    """The versions of Airflow for the group ``compat``; empty for all versions."""

    def targets(self, group: Group) -> list[str]:
        """Return the paths for pytest that belong to a group; empty if the command line names only
        tests of other groups.
        """
        if not self.tests:
            return [f"tests/{group.folder}"]
        folders = [f"tests/{name}" for name in (group.folder, *group.if_named)]
        below = tuple(f"{folder}/" for folder in folders)
        return [word for word in self.tests if word in folders or word.startswith(below)]


def parse_request(arguments: Sequence[str]) -> Request:
    """Return the request on the command line; for help or a usage error, print it and exit."""
    words = list(arguments)
    cut = words.index("--") if "--" in words else len(words)
    parser = make_parser()
    given = parser.parse_args(words[:cut])
    wanted = given.group
    if given.airflow and COMPAT.name not in wanted:
        parser.error(
            f"--airflow chooses versions for the group {COMPAT.name}: name that group, too"
        )
    rest = words[cut + 1 :]
    options = tuple(word for word in rest if not word.startswith("tests/"))
    tests = tuple(word for word in rest if word.startswith("tests/"))
    left_out = () if wanted or tests else tuple(group for group in GROUPS if group.opt_in)
    groups = (g for g in GROUPS if g.name in wanted or not (wanted or g.tests_of))
    chosen = tuple(group for group in groups if group not in left_out)
    request = Request(
        chosen, options, tests, left_out, is_whole=given.all, airflow=tuple(given.airflow)
    )
    if not tests:
        return request
    return replace(request, groups=tuple(g for g in request.groups if request.targets(g)))


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments before --."""
    parser = argparse.ArgumentParser(
        prog="bin/test",
        usage="bin/test [--all] [group ...] [--airflow VERSION ...] [-- pytest options]",
        description=DESCRIPTION.format(
            groups="\n".join(describe(group) for group in GROUPS if not group.opt_in),
            opt_in="\n".join(describe(group) for group in GROUPS if group.opt_in),
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    parser.add_argument("group", nargs="*", type=group_name, help=argparse.SUPPRESS)
    parser.add_argument("--all", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--airflow", action="append", default=[], help=argparse.SUPPRESS)
    parser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
    return parser


def describe(group: Group) -> str:
    """Return the line of the help about a group."""
    condition = f" It {group.opt_in}." if group.opt_in else ""
    return f"  {group.name:<12} {group.sentence}{condition}"


def group_name(word: str) -> str:
    """Return the word if it is the name of a group; else raise ``argparse.ArgumentTypeError`` with
    all names.
    """
    names = [group.name for group in GROUPS]
    if word not in names:
        raise argparse.ArgumentTypeError(f"{word!r} is not a group: choose from {', '.join(names)}")
    return word


def has_tests(root: Path, group: Group) -> bool:
    """Return True if the folder of the group has a test file."""
    return any((root / "tests" / group.folder).rglob("test_*.py"))
