"""Damaged copies of valid bytes, and limits of time and memory for decoders that read them.

``FUZZ_EXAMPLES=20000`` asks more of every test that is built on this.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.sampling import count

MOST_BYTES = 512 << 20
"""Far more than any sample needs; damaged lengths ask for gigabytes."""
MOST_CPU_SECONDS = 20
"""No measure of speed: a decoder that takes so long for a few kilobytes does not end."""

LENGTHS = [
    *(
        number.to_bytes(4, "little")
        for number in (0, 1 << 16, 1 << 31, (1 << 31) - 1, (1 << 32) - 1)
    ),
    *(number.to_bytes(4, "big") for number in (1 << 16, 1 << 31, (1 << 31) - 1)),
    # The largest numbers of Avro, Thrift and protobuf.
    b"\xfe\xff\xff\xff\x0f",
    b"\xff" * 9 + b"\x01",
    b"\xfe" + b"\xff" * 8 + b"\x01",
    b"\x80" * 9,
]


def fuzzed(examples: int) -> settings:
    """Make a third of the examples, a whole run all of them; the environment decides first."""
    return settings(
        max_examples=count(examples // 3, whole=examples, name="FUZZ_EXAMPLES"),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@st.composite
def damaged(draw: st.DrawFn, content: bytes, pieces: Sequence[bytes] = ()) -> bytes:
    """Changed, lost, moved and repeated bytes, absurd lengths, and ``pieces`` of the format."""
    for _ in range(draw(st.integers(1, 4))):
        size = len(content)
        # Heads and tails hold what leads to everything else.
        at = draw(
            st.integers(0, size)
            | st.integers(0, min(60, size))
            | st.integers(max(0, size - 60), size)
        )
        kind = draw(
            st.sampled_from(["byte", "bit", "noise", "length", "cut", "move", "end", "piece"])
        )
        head, tail = content[:at], content[at:]
        if kind == "byte":
            content = head + draw(st.binary(min_size=1, max_size=1)) + tail[1:]
        elif kind == "bit" and tail:
            content = head + bytes([tail[0] ^ 1 << draw(st.integers(0, 7))]) + tail[1:]
        elif kind == "noise":
            content = head + draw(st.binary(max_size=8)) + tail[draw(st.integers(0, 8)) :]
        elif kind == "length":
            length = draw(st.sampled_from(LENGTHS))
            content = head + length + tail[draw(st.sampled_from([0, 1, len(length)])) :]
        elif kind == "cut":
            content = head + tail[draw(st.integers(1, 16)) :]
        elif kind == "move":
            start = draw(st.integers(0, size))
            piece = content[start : start + draw(st.integers(1, 32))]
            content = head + piece + tail[draw(st.sampled_from([0, len(piece)])) :]
        elif kind == "end" and draw(st.booleans()):
            content = head
        elif kind == "piece" and pieces:
            content = head + draw(st.sampled_from(pieces)) + tail[draw(st.integers(0, 12)) :]
    return content


@dataclass
class Cost:
    """The time and memory of a block, once it has ended."""

    grown_bytes: int = 0
    cpu_seconds: float = 0.0


@contextmanager
def within_bounds() -> Iterator[Cost]:
    """Fail when the process grows by hundreds of megabytes, or works on and on."""
    if _RESET.exists():
        _RESET.write_text("5")  # the peak starts anew
    before, started = _peak_bytes(), time.process_time()
    cost = Cost()
    yield cost
    cost.grown_bytes = _peak_bytes() - before
    cost.cpu_seconds = time.process_time() - started
    assert cost.grown_bytes < MOST_BYTES, f"{cost.grown_bytes >> 20} MiB for one damaged file"
    assert cost.cpu_seconds < MOST_CPU_SECONDS, f"{cost.cpu_seconds:.0f} s for one damaged file"


def _peak_bytes() -> int:
    if _STATUS.exists():
        return int(_STATUS.read_text().split("VmHWM:")[1].split()[0]) << 10
    # Elsewhere the highest peak so far: it sees the first of two alike.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


_RESET, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
