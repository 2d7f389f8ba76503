# SPDX-License-Identifier: Apache-2.0
"""Test helpers: a storage that crashes on demand, and test suites for storages and tables.

The suites ``storage_suite``, ``moving_suite`` and ``table_suite`` need pytest.
"""

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
