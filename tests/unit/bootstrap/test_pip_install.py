"""Without uv, several pips share a lock file."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "bin" / "pip_install.py"
NAMES = ("one", "two", "three")


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock file of small packages, whose wheels lie beside it."""
    lines = []
    for name in NAMES:
        wheel = tmp_path / f"{name}-1.0-py3-none-any.whl"
        info = f"{name}-1.0.dist-info"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"{name}.py", f"NAME = {name!r}\n")
            archive.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
            )
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        lines += [f"{name}==1.0 \\", f"    --hash=sha256:{digest}"]
    file = tmp_path / "lock.txt"
    file.write_text("\n".join(lines) + "\n")
    return file


def installed(lock: Path) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Return what the script answers, and the files of an environment made for it."""
    folder = lock.parent / "environment"
    base = getattr(sys, "_base_executable", sys.executable)
    venv = [base, "-m", "venv", "--without-pip", "--system-site-packages", str(folder)]
    subprocess.run(venv, check=True)
    answer = subprocess.run(
        [str(folder / "bin" / "python"), str(SCRIPT), str(lock)],
        env={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(lock.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    return answer, sorted(path.name for path in folder.rglob("site-packages/**/*.py*"))


def test_every_package_is_installed_and_compiled(lock: Path) -> None:
    answer, files = installed(lock)
    assert answer.returncode == 0, answer.stderr
    assert [name for name in files if name.endswith(".py")] == sorted(f"{it}.py" for it in NAMES)
    assert len([name for name in files if name.endswith(".pyc")]) == len(NAMES)


def test_a_package_with_another_hash_fails_all(lock: Path) -> None:
    lock.write_text(re.sub("sha256:.*", "sha256:" + 64 * "0", lock.read_text(), count=1))
    answer, _ = installed(lock)
    assert answer.returncode != 0
    assert "DO NOT MATCH THE HASHES" in answer.stderr
