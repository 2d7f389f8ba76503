# SPDX-License-Identifier: Apache-2.0
"""Test helpers for users of this library: a storage that crashes on demand, and the promises of
``Storage`` as a test suite (``lakeformat.testing.storage_suite``, which needs pytest)."""

from __future__ import annotations

from lakeformat.testing.crashable import CrashableStorage
from lakeformat.testing.every_fault import Scenario, Trial, every_fault
from lakeformat.testing.faults import Call, Fault, FaultKind, PowerCut

__all__ = [
    "Call",
    "CrashableStorage",
    "Fault",
    "FaultKind",
    "PowerCut",
    "Scenario",
    "Trial",
    "every_fault",
]
