# SPDX-License-Identifier: Apache-2.0
"""Settings of Python workers for the processor of this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

__all__ = ["worker_environment"]

_CHOSEN = ("NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES")
_ZEN_3_AND_4 = "25"
"""The CPU family of AMD's Zen 3 and Zen 4; only Zen 4 has AVX-512."""
_WIDE, _WIDE_BEFORE_2_4 = "X86_V4", "AVX512_SKX"


def worker_environment(described: str | None = None) -> dict[str, str]:
    """Return the environment variable that stops numpy from using AVX-512 on AMD's Zen 4.

    The result is empty on any other processor, and if the user has already chosen the CPU features
    for numpy. On Zen 4 an AVX-512 instruction in numpy's sort is slow: sorting the keys of a bucket
    took five times as long as without it. ``described`` is the text of ``/proc/cpuinfo``; None
    reads this file.
    """
    if any(name in os.environ for name in _CHOSEN):
        return {}
    if not _is_zen_4(_cpuinfo() if described is None else described):
        return {}
    return {_CHOSEN[0]: _name_of_avx_512()}


def _is_zen_4(described: str) -> bool:
    values = dict(re.findall(r"^(vendor_id|cpu family|flags)\s*:\s*(.*)$", described, re.MULTILINE))
    return (
        values.get("vendor_id") == "AuthenticAMD"
        and values.get("cpu family") == _ZEN_3_AND_4
        and "avx512f" in values.get("flags", "").split()
    )


def _name_of_avx_512() -> str:
    """Return numpy's name for AVX-512, which differs between versions of numpy."""
    known = np.lib.introspect.opt_func_info(func_name="^add$")
    return _WIDE if _WIDE in str(known) else _WIDE_BEFORE_2_4


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no Linux
        return ""
