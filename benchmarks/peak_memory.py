"""Measures the memory of one candidate, in a process that does nothing else."""

from __future__ import annotations

import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from benchmarks.find import find_question
from benchmarks.timing import ready_work

__all__ = ["peak_memory_bytes"]

ROOT = Path(__file__).resolve().parent.parent


def peak_memory_bytes(question: str, candidate: str, data_folder: Path) -> int:
    """Return by how many bytes one run raises the peak of resident memory. The memory of imports
    and of the opened data is not included.
    """
    command = [sys.executable, "-m", "benchmarks.peak_memory", question, candidate]
    child = subprocess.run(
        [*command, str(data_folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return int(child.stdout)


def measure_here(question_name: str, candidate: str, data_folder: Path) -> int:
    """Run a candidate in this process and return by how many bytes its peak grew."""
    question = find_question(question_name)
    data = question.open_data(data_folder)
    with ready_work(question, candidate, data) as work:
        forget_peak()
        before = peak_bytes()
        question.consume(work())
        return peak_bytes() - before


def forget_peak() -> None:
    """Set the recorded peak to the current size, because opening the data may have needed more. Do
    nothing if the kernel cannot do this.
    """
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Return the highest resident size of this process in bytes, since ``forget_peak``; if the
    kernel cannot reset the peak, since the start of the process.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    # On Linux ru_maxrss starts at the size of the parent, which holds the data, too.
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


if __name__ == "__main__":
    print(measure_here(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
