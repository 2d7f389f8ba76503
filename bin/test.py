"""Runs the gate and the groups of tests; ``groups.py`` lists the groups."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import compat
import javapeer
import packages
import step
from beside import beside
from environment import work_environ
from groups import COMPAT, GATE, GROUPS, JAVA, UNIT, Group, Request, has_tests, parse_request
from summary import Sample, StepResult, format_summary, read_junit
from trouble import SetupError

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("lakeformat", "spark_jobs", "airflow_provider_lake", "benchmarks")

# The checks of the code as a whole: imports, public names, generated pages, licence headers.
STRUCTURE = (
    "test_import_direction.py",
    "test_public_names.py",
    "test_generated_docs.py",
    "test_licence_headers.py",
)

# Commits of tests spend a third of their time waiting for the disk; memory has no such wait.
MEMORY, MEMORY_BYTES = "/dev/shm", 8 << 30

# Options that work only if the tests run in pytest's own process.
ONE_PROCESS = ("-n", "-s", "--pdb", "--capture=no", "--trace")


def main(arguments: Sequence[str]) -> int:
    """Run the requested groups. Return 0 if all tests passed, 1 if one failed or none ran, and 2 if
    the machine cannot run them. Return 130 after Ctrl-C, and 143 after SIGTERM or SIGHUP.
    """
    request = parse_request(arguments)
    step.listen()
    sample = choose_sample(request)
    results: list[StepResult] = []
    try:
        if JAVA in request.groups and has_tests(ROOT, JAVA):
            javapeer.prepare(ROOT, os.environ)
        run(request, results)
    except SetupError as error:
        packages.say(str(error))
        return 2
    except KeyboardInterrupt as ending:
        print("\ninterrupted", flush=True)
        if results:
            print(format_summary(results, sample=sample), flush=True)
        return 143 if isinstance(ending, step.Terminated) else 130
    left_out = [group for group in request.left_out if has_tests(ROOT, group)]
    notes = [f"{group.name} ({group.opt_in}): bin/test {group.name}" for group in left_out]
    print(format_summary(results, left_out=notes, sample=sample), flush=True)
    ran = any(result.passed or result.failed or result.skip_reasons for result in results)
    return int(not ran or any(result.failed for result in results))


def choose_sample(request: Request) -> Sample:
    """Choose the seed that picks the cases of the exhaustive tests. Pass the seed and the option
    ``--all`` to the tests in environment variables; see ``tests/sampling.py``.
    """
    os.environ["SEED"] = os.environ.get("SEED") or str(time.time_ns() % 1_000_000)
    if request.is_whole:
        os.environ["LAKE_TEST_ALL"] = "1"
    return Sample(os.environ["SEED"], is_whole=bool(os.environ.get("LAKE_TEST_ALL")))


def run(request: Request, results: list[StepResult]) -> None:
    """Run the requested groups, and append their results to ``results``. Groups without tests are
    left out.
    """
    with tempfile.TemporaryDirectory(prefix="lake-test-", dir=memory_for_files()) as folder:
        if folder.startswith(MEMORY):
            os.environ["TMPDIR"] = folder
            os.chmod(folder, 0o711)  # because a database server runs as another user
        if GATE not in request.groups:
            run_groups(request, Path(folder), results)
            return
        # One processor checks the types while the other begins with the tests.
        with beside([("types", types())], folder=ROOT, environ=os.environ) as checked:
            results += run_gate(request)
            run_groups(request, Path(folder), results)
            results.append(check_result("types", *checked()[0]))


def run_groups(request: Request, folder: Path, results: list[StepResult]) -> None:
    """Run the groups of tests.

    Groups that start Java or Airflow mostly wait for these programs. So they run one after the
    other, beside the remaining groups.
    """
    groups = [group for group in request.groups if group is not GATE and has_tests(ROOT, group)]
    aside = [group for group in groups if group.is_aside]
    shares = len(aside) < len(groups) and uses_processes(request)
    if not shares:
        aside = []
    rest = deque(group for group in groups if group not in aside)
    reports = {group: folder / f"{group.name}.xml" for group in groups}
    begun: list[Group] = []

    def steps() -> Iterator[tuple[str, list[str]]]:
        for group in _taken_aside(aside, rest):
            begun.append(group)
            yield group.name, group_command(group, request, reports[group], is_aside=True)

    with beside(steps(), folder=ROOT, environ=step_environ()) as finished:
        while group := _take(rest.popleft):
            if group is COMPAT:
                run_compat(request, folder, results)
            else:
                results.append(run_tests(group, request, reports[group]))
        for group, (code, seconds) in zip(begun, finished(), strict=True):
            name = group.name
            read = read_junit(reports[group], name=name, seconds=seconds, exit_code=code)
            results.append(read)


def _taken_aside(aside: Sequence[Group], rest: deque[Group]) -> Iterator[Group]:
    """Yield the groups of ``aside``. Then take the last group from ``rest`` and yield it, until
    ``rest`` is empty.

    Take no group from ``rest`` if ``aside`` is empty. Take none either if ``rest`` still has the
    group ``compat``, which needs environments of its own.
    """
    yield from aside
    while aside and COMPAT not in rest and (group := _take(rest.pop)):
        yield group


def _take(take: Callable[[], Group]) -> Group | None:
    """Return the group that ``take`` removes from a deque; None if another thread took the last."""
    try:
        return take()
    except IndexError:
        return None


def memory_for_files() -> str | None:
    """Return a folder in memory for the files of tests; None to use the disk. Only CI uses memory,
    because these files are lost after the run.
    """
    if not os.environ.get("CI") or not os.path.isdir(MEMORY):
        return None
    is_fit = shutil.disk_usage(MEMORY).free >= MEMORY_BYTES and _runs_programs(MEMORY)
    return MEMORY if is_fit else None


def _runs_programs(folder: str) -> bool:
    """Return True if programs on the file system of ``folder`` may be run."""
    return not os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0)


def types() -> list[str]:
    """Return the command that checks the types of all packages."""
    packages = [name for name in PACKAGES if any((ROOT / name).rglob("*.py"))]
    command = [sys.executable, "-m", "mypy", "--strict"]
    command += [] if is_writable() else [f"--cache-dir={os.devnull}"]
    return [*command, *(word for name in packages for word in ("--package", name))]


def run_gate(request: Request) -> list[StepResult]:
    """Check formatting, lint and structure; run every step, so that one run shows all failures.

    Leave out the checks that the requested groups repeat: ``unit`` runs the tests of the
    structure, and each group collects its own tests.
    """
    ruff = str(Path(sys.executable).parent / "ruff")
    uncached = [] if is_writable() else ["--no-cache"]
    structure = [str(path) for name in STRUCTURE if (path := ROOT / "tests/unit" / name).exists()]
    quiet = [word for word in pytest() if word != "-q"]
    formatted = [ruff, "format", "--check", *uncached, "."]
    results = [
        run_check("format", formatted, mend=".venv/bin/ruff format ."),
        run_check("lint", [ruff, "check", *uncached, "."], mend=".venv/bin/ruff check --fix ."),
    ]
    if UNIT not in request.groups or request.options:
        results.append(run_check("structure", [*pytest(), *structure]))
    if folders := folders_to_collect(request):
        # Thousands of names are not printed.
        collection = [*quiet, "--collect-only", "-p", "no:terminal", *folders]
        results.append(run_check("collection", collection))
    return results


def folders_to_collect(request: Request) -> list[str]:
    """Return the folders of tests that no group of the request collects as a whole."""
    is_whole = not (request.options or request.tests)
    collected = {group.folder for group in request.groups} if is_whole else set()
    folders = {group.folder: None for group in GROUPS if group is not GATE}
    return [
        f"tests/{name}"
        for name in folders
        if name not in collected and (ROOT / "tests" / name).is_dir()
    ]


def run_check(name: str, command: list[str], *, mend: str = "") -> StepResult:
    """Run a step of the gate; ``mend`` is the command that may repair a failure."""
    code, seconds = stream(name, command)
    return check_result(name, code, seconds, mend=mend)


def check_result(name: str, code: int, seconds: float, *, mend: str = "") -> StepResult:
    """Return the result of a step of the gate from its exit code."""
    if code == 0:
        return StepResult(name, seconds, passed=1, failed=0, is_test=False)
    again = f"bin/test {GATE.name}"
    return StepResult(name, seconds, passed=0, failed=1, rerun=again, mend=mend, is_test=False)


def run_tests(
    group: Group,
    request: Request,
    report: Path,
    other: packages.Environment | None = None,
) -> StepResult:
    """Run the tests of one group with pytest, or only the requested ones.

    The tests run in the environment ``other``; None means the environment of this process.
    """
    command = group_command(group, request, report, other)
    code, seconds = stream(group.name, command, environ_of(other))
    return read_junit(report, name=group.name, seconds=seconds, exit_code=code)


def group_command(
    group: Group,
    request: Request,
    report: Path,
    other: packages.Environment | None = None,
    *,
    is_aside: bool = False,
) -> list[str]:
    """Return the pytest command of a group; ``is_aside`` is True if it runs beside
    further groups.
    """
    command = [*pytest(str(other.python) if other else sys.executable), f"--junitxml={report}"]
    # Other versions of Airflow warn of packages that are newer or older than theirs.
    command += ["-W", "ignore"] if other else []
    if group.is_parallel and uses_processes(request):
        # A module's tests run in one process, so that its fixtures are made once, and no process
        # idles.
        processes = min(4, (os.cpu_count() or 1) + (group.waits and not is_aside))
        command += ["-n", str(processes), "--dist", "worksteal"]
    return [*command, *request.options, *request.targets(group)]


def uses_processes(request: Request) -> bool:
    """Return False if an option for pytest needs all tests in pytest's own process."""
    return not any(word.startswith(ONE_PROCESS) for word in request.options)


def run_compat(request: Request, folder: Path, results: list[StepResult]) -> None:
    """Run the tests once for each version of Airflow. A version that cannot be installed is skipped
    with a reason.
    """
    for version, other in compat.choose(ROOT, request.airflow).items():
        group = replace(COMPAT, name=f"{COMPAT.name} --airflow {version}")
        try:
            if other:
                packages.prepare(other, os.environ)
        except SetupError as error:
            reason = f"Airflow {version} is not installed: {error}"
            results.append(StepResult(group.name, 0.0, 0, 0, skip_reasons=(reason,)))
            continue
        results.append(run_tests(group, request, folder / f"compat-{version}.xml", other))


def environ_of(other: packages.Environment | None) -> dict[str, str]:
    """Return the environment variables for tests in the environment ``other``; those of this
    process if it is None.
    """
    if other is None:
        return dict(os.environ)
    whole = {name: os.environ[name] for name in ("LAKE_TEST_ALL",) if name in os.environ}
    return work_environ(other, os.environ, os.environ.get("JAVA_HOME", "")) | whole


def pytest(python: str = sys.executable) -> list[str]:
    """Return the pytest command; it uses no cache if the folder of the project is read-only."""
    command = [python, "-m", "pytest", "-q"]
    return command if is_writable() else [*command, "-p", "no:cacheprovider"]


def is_writable() -> bool:
    """Return True if tools can write their caches into the folder of the project."""
    return os.access(ROOT, os.W_OK)


def stream(
    name: str, command: list[str], environ: Mapping[str, str] | None = None
) -> tuple[int, float]:
    """Run a step whose output appears at once; return its exit code and its seconds."""
    print(f"\n== {name} ==", flush=True)
    began = time.monotonic()
    code = step.run_step(command, folder=ROOT, environ=step_environ(environ))
    return code, time.monotonic() - began


def step_environ(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment variables of a step: ``environ``, or those of this process if it is
    None.
    """
    own = dict(os.environ if environ is None else environ)
    if not is_writable():
        own.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", tempfile.gettempdir())
    return own


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
