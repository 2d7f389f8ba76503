"""What Python workers are told of this machine's processor."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

__all__ = ["worker_environment"]

_CHOSEN = ("NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES")
_ZEN_3_AND_4 = "25"
"""The family of both; of the two only the newer has AVX-512."""
_WIDE, _WIDE_BEFORE_2_4 = "X86_V4", "AVX512_SKX"


def worker_environment(described: str | None = None) -> dict[str, str]:
    """Variables for Python workers on this machine; none where numpy sorts as fast as it can.

    AMD's Zen 4 runs in microcode the instruction that numpy parts numbers with where there is
    AVX-512: sorting a bucket's keys was measured to take five times as long as without. What
    somebody has told numpy already stays. ``described``: as Linux describes its processors.
    """
    if any(name in os.environ for name in _CHOSEN):
        return {}
    if not _is_zen_4(_cpuinfo() if described is None else described):
        return {}
    return {_CHOSEN[0]: _name_of_avx_512()}


def _is_zen_4(described: str) -> bool:
    told = dict(re.findall(r"^(vendor_id|cpu family|flags)\s*:\s*(.*)$", described, re.MULTILINE))
    return (
        told.get("vendor_id") == "AuthenticAMD"
        and told.get("cpu family") == _ZEN_3_AND_4
        and "avx512f" in told.get("flags", "").split()
    )


def _name_of_avx_512() -> str:
    """What numpy calls what it has for it; of a name it does not know it warns, and goes on."""
    known = np.lib.introspect.opt_func_info(func_name="^add$")
    return _WIDE if _WIDE in str(known) else _WIDE_BEFORE_2_4


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no Linux
        return ""
