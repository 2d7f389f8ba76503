# SPDX-License-Identifier: Apache-2.0
"""Hides pandas from the library's own processes: it would make their start a third longer."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

__all__ = ["hide_pandas"]


def hide_pandas() -> None:
    """Make ``import pandas`` fail in this process from now on, as if pandas were not installed.

    Arrow imports pandas only to check if a list is a pandas Series. Call this only in the library's
    own processes, never in a process of its users or of Spark.
    """
    sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("this process works without pandas", name=name)
