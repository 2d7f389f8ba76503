"""The Python environment of Delta Lake, Lance and PyIceberg, the peers of some benchmarks."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

__all__ = ["peer_python"]

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers"
LOCK = ROOT / "requirements" / "peers.txt"


def peer_python() -> str:
    """Return the Python of the environment; first install the environment unless it is complete."""
    python, stamp = PEERS / "bin" / "python", PEERS / "peers.txt"
    if not stamp.exists() or stamp.read_bytes() != LOCK.read_bytes():
        venv.create(PEERS, clear=True, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--require-hashes", "-r", str(LOCK)], check=True)
        stamp.write_bytes(LOCK.read_bytes())
    return str(python)
