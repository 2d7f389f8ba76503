"""The settings of Python workers for their processor."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from spark_jobs.runtime.processor import _name_of_avx_512, worker_environment
from spark_jobs.runtime.spark_session import _place

ZEN_4 = """\
processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 17
flags		: fpu avx2 avx512f avx512bw
"""
DISABLED = "NPY_DISABLE_CPU_FEATURES"


@pytest.fixture(autouse=True)
def _nobody_has_chosen(monkeypatch):
    for name in (DISABLED, "NPY_ENABLE_CPU_FEATURES"):
        monkeypatch.delenv(name, raising=False)


def test_on_zen_4_numpy_sorts_without_what_that_does_slowly():
    assert worker_environment(ZEN_4) == {DISABLED: _name_of_avx_512()}


def test_numpy_knows_what_it_is_told_to_leave_out():
    told = [sys.executable, "-W", "error", "-c", "import numpy"]

    environment = {**os.environ, DISABLED: _name_of_avx_512()}
    ended = subprocess.run(told, env=environment, capture_output=True, text=True, check=False)

    # On a processor that has no AVX-512 numpy says that there is nothing to leave out.
    assert "not part of the dispatched" not in ended.stderr


@pytest.mark.parametrize(
    "described",
    [
        ZEN_4.replace("avx512f ", ""),
        ZEN_4.replace("25", "26"),
        ZEN_4.replace("AuthenticAMD", "GenuineIntel"),
        "",
    ],
    ids=["Zen 3", "Zen 5", "Intel", "unknown"],
)
def test_other_processors_get_all_numpy_has(described):
    assert worker_environment(described) == {}


@pytest.mark.parametrize("name", [DISABLED, "NPY_ENABLE_CPU_FEATURES"])
def test_what_somebody_has_told_numpy_stays(name, monkeypatch):
    monkeypatch.setenv(name, "X86_V3")

    assert worker_environment(ZEN_4) == {}


def test_only_workers_on_this_machine_are_told(monkeypatch):
    monkeypatch.setattr("spark_jobs.runtime.spark_session.worker_environment", lambda: {"A": "b"})

    assert _place("local[2]")["spark.executorEnv.A"] == "b"
    assert _place("yarn") == {}
