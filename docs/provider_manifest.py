"""The manifest of the provider, in the form of Airflow's own providers."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import yaml

from airflow_provider_lake.provider_info import get_provider_info

__all__ = ["provider_manifest"]

ROOT = Path(__file__).resolve().parent.parent
_HEAD = "# Written by docs/generate.py: change provider_info.py, then run docs/generate.py.\n"
# Seconds since 1970 of the release; packages built from one source are then equal.
_RELEASED = 1_795_996_800


def provider_manifest() -> str:
    """Return the text of provider.yaml."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    manifest: dict[str, Any] = {
        **get_provider_info(),
        "state": "ready",
        "lifecycle": "incubation",
        "build-system": "hatchling",
        "source-date-epoch": _RELEASED,
        "versions": [version],
    }
    return _HEAD + yaml.safe_dump(manifest, sort_keys=False, width=100, allow_unicode=True)
